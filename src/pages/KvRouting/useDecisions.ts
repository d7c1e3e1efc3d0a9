import { useState } from 'react';

import { listDecisions, useClient, usePolled, type DecisionList, type Polled } from '../../client';
import { shortName } from '../../lib/workers';
import { LANE } from '../lane';
import { assignRoundRobin, type Assignments, type Decision } from './routing';

/** The interval between requests for decisions, in milliseconds. */
const EVERY = 1000;

/** How many decisions are listed and added up. */
const LISTED = 30;

/** Latest decisions, and their assignment by round-robin. */
export interface Decisions extends Polled<DecisionList> {
  dealt: Assignments;
}

const NOT_DEALT: Assignments = new Map();

/** Polls the router's decisions while the target reports them. */
export function useDecisions(active: boolean): Decisions {
  const client = useClient();
  const load = async () => withShortNames(await listDecisions(client, LANE, LISTED));
  const polled = usePolled(active ? load : undefined, EVERY, 'decisions');
  const [seen, setSeen] = useState<{ decisions?: Decision[]; dealt: Assignments }>({ dealt: NOT_DEALT });
  const decisions = polled.value?.decisions;
  if (decisions === seen.decisions) {
    return { ...polled, dealt: seen.dealt };
  }
  const dealt = assignRoundRobin(decisions ?? [], seen.dealt);
  setSeen({ decisions, dealt });
  return { ...polled, dealt };
}

/** Renames the decisions' workers as on all pages. */
function withShortNames(list: DecisionList): DecisionList {
  const decisions = list.decisions.map(({ candidates, ...decision }) => ({
    ...decision,
    candidates: candidates.map((one) => ({ ...one, name: shortName(one.name) })),
  }));
  return { ...list, decisions };
}
