import React, { useState, type KeyboardEvent, type ReactNode } from 'react';

import { ConfirmModal } from '@grafana/ui';

import type { Question } from '../../lib/losses';

/** Asks before something is done that loses something: the one way in which a page, a panel or the stage does so. */
export interface Confirm {
  /** Does something at once where there is nothing to ask, else once the operator confirms it. */
  before(question: Question | undefined, act: () => void): void;
  /** Whether a question is open. */
  isOpen: boolean;
  /** Takes the question back. */
  dismiss(): void;
  /** The open question, to be put anywhere on the page. */
  dialog: ReactNode;
}

/** Enter confirms, Escape takes it back. A key that is held down since before the question does not answer it. */
export function useConfirm(): Confirm {
  const [asked, ask] = useState<{ question: Question; act(): void }>();
  const dismiss = () => ask(undefined);
  const before = (question: Question | undefined, act: () => void) => {
    if (question) {
      ask({ question, act });
    } else {
      act();
    }
  };
  return { before, isOpen: asked !== undefined, dismiss, dialog: asked && <Dialog {...asked} onDismiss={dismiss} /> };
}

function Dialog({ question, act, onDismiss }: { question: Question; act(): void; onDismiss(): void }) {
  return (
    <div onKeyDownCapture={(event: KeyboardEvent) => event.repeat && event.preventDefault()}>
      <ConfirmModal
        isOpen
        title={question.title}
        body={question.body}
        confirmText={`${question.confirm} (Enter)`}
        confirmButtonVariant="primary"
        dismissText="Cancel (Esc)"
        onConfirm={() => {
          onDismiss();
          act();
        }}
        onDismiss={onDismiss}
      />
    </div>
  );
}
