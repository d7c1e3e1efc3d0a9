import type { Vendor } from '../../../vendor';
import { EXAMPLE, workOut } from '../../KvRouting/example';
import type { Figures, Reference } from '../figures';
import file from './published.json';

/** Figures, each with the source that it names. One without a source is in the documents of the demonstration alone. */
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
  /** Of when it is. */
  date?: string;
  source?: string;
}

/** Said of a figure that has no public source. */
export const IN_DOCUMENTS = 'demo’s documents';

/** The two lowest costs of the worked example. */
const [chosen, other] = workOut().sort((a, b) => a.cost - b.cost);
const example = (value: number) => ({ value: String(value), word: 'example' });

/**
 * Figures that this program does not measure. What others published and what the documents of the demonstration
 * say stands in published.json, and the vendor's claims in its file, each with who published it and where.
 * The `ex` are those of the worked example of the cost formula, which it computes.
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
