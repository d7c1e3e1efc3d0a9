import type { Vendor } from '../../../vendor';
import { EXAMPLE, workOut } from '../../KvRouting/example';
import { prefixed, type Figures } from '../figures';
import file from './published.json';

type Claim = Pick<Vendor['claims'][number], 'id' | 'value' | 'source'> & { date?: string };

function quotable(claims: Claim[]): Figures {
  return Object.fromEntries(
    claims.map(({ id, value, date, source }) => {
      const word = source === undefined ? IN_DOCUMENTS : 'published';
      return [id, { value, word: date === undefined ? word : `${word}, ${date}` }];
    })
  );
}

/** The label of a figure without a public source. */
export const IN_DOCUMENTS = 'demo’s documents';

/** The two lowest costs of the worked example. */
const [chosen, other] = workOut().sort((a, b) => a.cost - b.cost);
const example = (value: number) => ({ value: String(value), word: 'example' });

/**
 * The figures that this program does not measure. published.json has those of others and of the demonstration's
 * documents, the vendor's file has the vendor's claims; texts with them name their sources. The names under `ex` are
 * those of the worked example of the cost formula, computed here.
 */
export const publishedFigures = ({ claims }: Vendor): Figures => ({
  ...prefixed('pub', quotable(file)),
  ...prefixed('claim', quotable(claims)),
  'ex.blocks': example(EXAMPLE.blocks),
  'ex.cached': example(chosen.cached),
  'ex.busy': example(chosen.decode),
  'ex.cost': example(chosen.cost),
  'ex.other-cached': example(other.cached),
  'ex.other-busy': example(other.decode),
  'ex.other-cost': example(other.cost),
});
