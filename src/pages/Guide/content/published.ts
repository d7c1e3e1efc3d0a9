import type { Vendor } from '../../../vendor';
import { EXAMPLE, workOut } from '../../KvRouting/example';
import type { Figures, Reference } from '../figures';
import file from './published.json';

/** Figures with the source that each names. Those without a source are only in the documents of the demonstration. */
function quotable(prefix: string, figures: Claim[], sources: Array<Reference & { id: string }>): Figures {
  return Object.fromEntries(
    figures.map(({ id, value, date, source }) => {
      const word = source === undefined ? IN_DOCUMENTS : 'published';
      return [
        `${prefix}.${id}`,
        {
          value,
          word: date === undefined ? word : `${word}, ${date}`,
          source: sources.find((one) => one.id === source),
        },
      ];
    })
  );
}

interface Claim {
  id: string;
  value: string;
  date?: string;
  source?: string;
}

/** The label of a figure without a public source. */
export const IN_DOCUMENTS = 'demo’s documents';

/** The two lowest costs of the worked example. */
const [chosen, other] = workOut().sort((a, b) => a.cost - b.cost);
const example = (value: number) => ({ value: String(value), word: 'example' });

/**
 * The figures that this program does not measure. published.json has those of others and of the demonstration's
 * documents, the vendor's file has the vendor's claims, each with publisher and place. The names under `ex` are those
 * of the worked example of the cost formula, computed here.
 */
export const publishedFigures = ({ claims, sources }: Vendor): Figures => ({
  ...quotable('pub', file.figures, file.sources),
  'ex.blocks': example(EXAMPLE.blocks),
  'ex.cached': example(chosen.cached),
  'ex.busy': example(chosen.decode),
  'ex.cost': example(chosen.cost),
  'ex.other-cached': example(other.cached),
  'ex.other-busy': example(other.decode),
  'ex.other-cost': example(other.cost),
  ...quotable('claim', claims, sources),
});
