/** @jest-environment node */
import { state } from '../test/fixtures';
import { isOffered, isPhase, PHASES } from './phases';

describe('the phases', () => {
  it('change one thing at a time', () => {
    const changed = PHASES.slice(1).map(
      (phase, i) => Number(phase.mode !== PHASES[i].mode) + Number(phase.speculation !== PHASES[i].speculation)
    );
    expect(changed).toEqual([1, 1, 1]);
  });

  it('are absent where the speculation is not known', () => {
    expect(PHASES.some((phase) => isPhase(phase, { mode: 'kv', speculation: 'not_recorded' }))).toBe(false);
  });

  it('are offered where the driver lists them, or where they are in force', () => {
    const offered = PHASES.filter((phase) => isOffered(phase, state())).map((phase) => phase.id);
    expect(offered).toEqual(['1', '2', '3b']); // the fixture's driver has no draft model
    const here = state({ speculation: 'draft', modes: [] });
    expect(PHASES.filter((phase) => isOffered(phase, here)).map((phase) => phase.id)).toEqual(['3a']);
  });
});
