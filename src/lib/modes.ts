import type { Mode, ModeState, Speculation, State } from '../client';

/** One choice of a group, and whether it is available now. */
export interface Choice<T> {
  value: T;
  selected: boolean;
  offered: boolean;
}

/** The choices by group, with those in force. */
interface ModeChoices {
  /** Empty where there are arms. */
  modes: Array<Choice<Mode>>;
  /** Arms of the configuration by their names. */
  arms: Array<Choice<string>>;
  /** Those that go with the mode in force. */
  speculations: Array<Choice<Speculation>>;
}

/** What of a state is about modes. */
export type Offer = Pick<State, 'arm' | 'mode' | 'speculation' | 'driver' | 'modes'>;

/** Groups what the driver offers by mode and by speculation, or as arms. */
export function groupModes({ arm, mode, speculation, modes: offers }: Offer): ModeChoices {
  const arms = offers.flatMap((o) => (o.arm === undefined ? [] : [o.arm]));
  if (arms.length > 0) {
    return {
      modes: [],
      speculations: [],
      arms: arms.map((value) => ({ value, selected: value === arm, offered: true })),
    };
  }
  const all: ModeState[] = [...offers, { mode, speculation }];
  const unique = <T>(values: T[]) => Array.from(new Set(values));
  return {
    arms: [],
    modes: unique(all.map((o) => o.mode)).map((value) => ({
      value,
      selected: value === mode,
      offered: offers.some((o) => o.mode === value),
    })),
    speculations: unique(all.map((o) => o.speculation)).map((value) => ({
      value,
      selected: value === speculation,
      offered: offers.some((o) => o.mode === mode && o.speculation === value),
    })),
  };
}

/** Returns the speculation to request with a mode: the one in force where it is offered, else the first offered. */
export function speculationFor(mode: Mode, { speculation, modes }: Offer): Speculation | undefined {
  const offered = modes.filter((o) => o.mode === mode).map((o) => o.speculation);
  return offered.includes(speculation) ? speculation : offered[0];
}
