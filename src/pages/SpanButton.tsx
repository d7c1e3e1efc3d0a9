import { Button } from '@grafana/ui';

import { spanText, type Span } from './span';

/** The span of time that a list is restricted to, as a button that ends that; nothing without a span. */
export function SpanButton({ span, onClear }: { span: Span; onClear(): void }) {
  const text = spanText(span);
  return text === undefined ? null : (
    <Button variant="secondary" size="sm" icon="times" aria-label={`${text}: show all times`} onClick={onClear}>
      {text}
    </Button>
  );
}
