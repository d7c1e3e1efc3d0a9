/** @jest-environment node */
import { state } from '../test/fixtures';
import { groupModes, speculationFor } from './modes';

const offers = state().modes; // round_robin/off, kv/off, kv/eagle3

describe('groupModes', () => {
  it('offers a speculation only with the modes that have it', () => {
    const { modes, speculations } = groupModes(state({ mode: 'round_robin', speculation: 'off', modes: offers }));
    expect(modes).toEqual([
      { value: 'round_robin', selected: true, offered: true },
      { value: 'kv', selected: false, offered: true },
    ]);
    expect(speculations).toEqual([
      { value: 'off', selected: true, offered: true },
      { value: 'eagle3', selected: false, offered: false },
    ]);
  });

  it('shows the value in force although it is not offered', () => {
    const { modes, speculations } = groupModes(state({ mode: 'least_loaded', speculation: 'not_recorded', modes: [] }));
    expect(modes).toEqual([{ value: 'least_loaded', selected: true, offered: false }]);
    expect(speculations).toEqual([{ value: 'not_recorded', selected: true, offered: false }]);
  });
});

describe('speculationFor', () => {
  it('is kept where it is offered', () => {
    expect(speculationFor('kv', state({ speculation: 'eagle3', modes: offers }))).toBe('eagle3');
    expect(speculationFor('round_robin', state({ speculation: 'eagle3', modes: offers }))).toBe('off');
    expect(speculationFor('least_loaded', state({ modes: offers }))).toBeUndefined();
  });
});
