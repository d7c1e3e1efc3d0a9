import { useState } from 'react';

import { listDecisions, useClient, usePolled, type DecisionList, type Polled } from '../../client';
import { shortName } from '../../lib/workers';
import { LANE } from '../lane';
import { deal, type Dealt, type Decision } from './routing';

/** How often the decisions are asked for, in milliseconds. */
const EVERY = 1000;

/** How many decisions are listed and added up. */
const LISTED = 30;

/** Latest decisions, and how round-robin would have dealt them. */
export interface Decisions extends Polled<DecisionList> {
  dealt: Dealt;
}

const NOT_DEALT: Dealt = new Map();

/** Follows the router's decisions while there is something to ask. */
export function useDecisions(active: boolean): Decisions {
  const client = useClient();
  const load = async () => withShortNames(await listDecisions(client, LANE, LISTED));
  const polled = usePolled(active ? load : undefined, EVERY, 'decisions');
  const [seen, setSeen] = useState<{ decisions?: Decision[]; dealt: Dealt }>({ dealt: NOT_DEALT });
  const decisions = polled.value?.decisions;
  if (decisions === seen.decisions) {
    return { ...polled, dealt: seen.dealt };
  }
  const dealt = deal(decisions ?? [], seen.dealt);
  setSeen({ decisions, dealt });
  return { ...polled, dealt };
}

/** Decisions whose workers are called as on all pages. */
function withShortNames(list: DecisionList): DecisionList {
  const decisions = list.decisions.map(({ candidates, ...decision }) => ({
    ...decision,
    candidates: candidates.map((one) => ({ ...one, name: shortName(one.name) })),
  }));
  return { ...list, decisions };
}
