import { useState } from 'react';

import { asProblem, type Problem } from '../client';

/** A set of values that is edited and then saved together. */
export interface Editing<V> {
  values: V;
  changed: boolean;
  saving: boolean;
  saved: boolean;
  problem?: Problem;
  set(change: Partial<V>): void;
  discard(): void;
  save(): Promise<void>;
}

/**
 * Edits values over those that are stored. save stores them and gives what is
 * stored then; until it has succeeded the edits stay.
 */
export function useForm<V extends object>(stored: V, store: (values: V) => Promise<unknown>): Editing<V> {
  const [edits, setEdits] = useState<Partial<V>>({});
  const [saving, setSaving] = useState(false);
  const [saved, setSaved] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const values = { ...stored, ...edits };
  const changed = (Object.keys(edits) as Array<keyof V>).some((key) => edits[key] !== stored[key]);

  const forget = () => {
    setEdits({});
    setProblem(undefined);
  };
  const save = async () => {
    setSaving(true);
    setProblem(undefined);
    try {
      await store(values);
      forget();
      setSaved(true);
    } catch (error) {
      setProblem(asProblem(error));
    }
    setSaving(false);
  };
  return {
    values,
    changed,
    saving,
    saved: saved && !changed,
    problem,
    set: (change) => {
      setSaved(false);
      setEdits((now) => ({ ...now, ...change }));
    },
    discard: forget,
    save,
  };
}
