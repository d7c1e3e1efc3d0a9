import type { Baseline, Mode, Sustained } from '../client';
import { levelText, valueOf } from './level';

/** Returns what a mode of a baseline sustains; of several kinds of speculation the first. */
export function sustainedOf(baseline: Baseline | undefined, mode: Mode): Sustained | undefined {
  return baseline?.sustained?.find((sustained) => sustained.mode === mode);
}

/** Formats the level; undefined where none was tested. */
export function sustainedLevel({ level }: Sustained): string | undefined {
  return level === undefined ? undefined : valueOf(level) === 0 ? 'no level' : levelText(level);
}

/** Describes the limits of the judgment; undefined where it rests on all SLOs at every level. */
export function sustainedNote(sustained: Sustained, { rows }: Baseline): string | undefined {
  const { mode, speculation, ttft_only, untested } = sustained;
  const levels = rows.filter((row) => row.mode === mode && row.speculation === speculation).length;
  const everywhere = ttft_only.length === levels - untested.length;
  const notes = [
    ttft_only.length > 0 &&
      (everywhere
        ? 'judged by TTFT alone; TPOT not recorded'
        : `judged by TTFT alone at ${ttft_only.join(', ')}; TPOT not recorded there`),
    untested.length > 0 && `TTFT not recorded at ${untested.join(', ')}`,
  ].filter(Boolean);
  return notes.length > 0 ? notes.join('; ') : undefined;
}
