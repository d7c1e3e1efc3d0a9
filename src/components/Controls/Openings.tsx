import { memo } from 'react';

import { number } from '../../lib/format';
import { Choices } from './ModeSwitch';

/** The choices besides the current one; 0 means one for each conversation. */
const offered = [10, 100, 1000];

interface OpeningsProps {
  value: number;
  disabled: boolean;
  onChange(openings: number): void;
}

/** The number of opening texts, and its effect. */
export const Openings = memo(function Openings({ value, disabled, onChange }: OpeningsProps) {
  const numbers = [...new Set([...offered, ...(value > 0 ? [value] : [])])].sort((a, b) => a - b);
  return (
    <Choices
      label="Opening texts"
      choices={[...numbers, 0].map((n) => ({ value: String(n), selected: n === value, offered: true }))}
      name={(n) => (n === '0' ? 'One each' : number(Number(n)))}
      disabled={disabled}
      note={effect(value)}
      onChoose={(n) => onChange(Number(n))}
    />
  );
});

/** Describes the effect of a number of opening texts. */
function effect(openings: number): string {
  if (openings === 0) {
    return (
      'Each conversation opens with its own text: turn 1 is prefilled in full, and later turns ' +
      'hit the cache only if the router sends them back to the same worker.'
    );
  }
  const texts = openings === 1 ? 'one text' : `${number(openings)} texts`;
  return openings < 100
    ? `All conversations open with one of ${texts}, which every worker soon has in its cache: turn 1 also hits.`
    : `All conversations open with one of ${texts}: turn 1 hits only if the chosen worker ` +
        'still has that text in its cache.';
}
