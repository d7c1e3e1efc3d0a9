import { useState, type KeyboardEvent, type ReactNode } from 'react';
import { cx } from '@emotion/css';

import { Button, Modal } from '@grafana/ui';

import type { Question } from '../../lib/losses';
import { stylesOf } from '../../lib/styles';

/** Confirms an action that loses something. Pages, panels and the stage all use it. */
export interface Confirm {
  /** Runs an action at once where there is no question, else after the operator has confirmed it. */
  before(question: Question | undefined, act: () => void): void;
  isOpen: boolean;
  dismiss(): void;
  /** The open confirmation, to be rendered anywhere on the page. */
  dialog: ReactNode;
}

/** Enter confirms, Escape cancels. A key that was already held down does not count. */
export function useConfirm(className?: string): Confirm {
  const [asked, ask] = useState<{ question: Question; act(): void }>();
  const dismiss = () => ask(undefined);
  const before = (question: Question | undefined, act: () => void) => {
    if (question) {
      ask({ question, act });
    } else {
      act();
    }
  };
  return {
    before,
    isOpen: asked !== undefined,
    dismiss,
    dialog: asked && <Dialog {...asked} className={className} onDismiss={dismiss} />,
  };
}

interface DialogProps {
  question: Question;
  act(): void;
  className?: string;
  onDismiss(): void;
}

/** What Grafana's dialog for questions does, without its form, whose code every first visit would load. */
function Dialog({ question, act, className, onDismiss }: DialogProps) {
  const styles = useStyles();
  const confirm = () => {
    onDismiss();
    act();
  };
  return (
    <div onKeyDownCapture={(event: KeyboardEvent) => event.repeat && event.preventDefault()}>
      <Modal className={cx(styles.modal, className)} title={question.title} isOpen onDismiss={onDismiss}>
        <div className={styles.body}>{question.body}</div>
        <Modal.ButtonRow>
          <Button variant="secondary" fill="outline" onClick={onDismiss}>
            {question.dismiss ?? 'Cancel'} (Esc)
          </Button>
          <Button variant={question.isFinal ? 'destructive' : 'primary'} autoFocus onClick={confirm}>
            {question.confirm} (Enter)
          </Button>
        </Modal.ButtonRow>
      </Modal>
    </div>
  );
}

const useStyles = stylesOf(() => ({
  modal: { width: 500 },
  body: { fontSize: '1.15em' },
}));
