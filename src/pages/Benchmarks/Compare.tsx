import { useId, useMemo } from 'react';

import { Checkbox, Combobox, Field } from '@grafana/ui';

import { reportAddress, useBaselines, useClient, type Baseline, type ReportSide, type Settings } from '../../client';
import { NotLoaded } from '../../components/Loading';
import { modeKey, modeText } from '../../lib/names';
import { stylesOf } from '../../lib/styles';
import { useChoice } from '../useChoice';
import { ReportLinks } from './ReportLinks';

/** One side of a comparison: a baseline in one of its modes. */
interface Side extends ReportSide {
  key: string;
  label: string;
  /** The levels that the documents of its runs print; undefined where those are all. */
  printed?: number[];
}

/** A form that opens the report of any two results. */
export function Compare({ slo }: { slo: Settings['slo'] | undefined }) {
  const styles = useStyles();
  const client = useClient();
  const { value: baselines, problem } = useBaselines(slo);
  const sides = useMemo(() => baselines?.flatMap(sidesOf), [baselines]);
  const [chosenA, chooseA] = useChoice('a');
  const [chosenB, chooseB] = useChoice('b');
  const [levels, chooseLevels] = useChoice('levels');
  if (!sides) {
    return <NotLoaded what="results" problem={problem} />;
  }
  const find = (key: string | undefined) => sides.find((side) => side.key === key);
  const [a, b] = [find(chosenA), find(chosenB)];
  const printed = (a?.printed ?? b?.printed)?.join(',');
  const only = levels === 'printed' ? printed : undefined;
  return (
    <div className={styles.compare}>
      <Chooser label="A (reference)" sides={sides} chosen={a} onChoose={chooseA} />
      <Chooser label="B" sides={sides} chosen={b} onChoose={chooseB} />
      {printed && (
        <Checkbox
          className={styles.levels}
          label="Only the levels that the documents print"
          description={printed.replaceAll(',', ', ')}
          value={only !== undefined}
          onChange={({ currentTarget }) => chooseLevels(currentTarget.checked ? 'printed' : undefined)}
        />
      )}
      {a && b && a !== b ? (
        <ReportLinks
          what="Comparison"
          file="kv-booth-comparison"
          size="md"
          variant="primary"
          address={(format) => reportAddress(client, a, b, format, only)}
        />
      ) : (
        <p className={styles.note}>
          {a && a === b ? 'Choose two different results.' : 'Choose two results: recorded, imported or measured.'} Save
          a result above as a baseline to choose it here.
        </p>
      )}
    </div>
  );
}

/** Lists a baseline in each of its modes. */
function sidesOf({ name, title, rows, provenance }: Baseline): Side[] {
  const found = new Map<string, Side>();
  for (const row of rows) {
    const key = `${name} ${modeKey(row)}`;
    if (!found.has(key)) {
      const { mode, speculation } = row;
      const label = `${title}: ${modeText(row)}`;
      found.set(key, { key, label, baseline: name, mode, speculation, printed: provenance?.printed_levels });
    }
  }
  return [...found.values()];
}

interface ChooserProps {
  label: string;
  sides: Side[];
  chosen: Side | undefined;
  onChoose(key: string | undefined): void;
}

function Chooser({ label, sides, chosen, onChoose }: ChooserProps) {
  const id = useId();
  return (
    <Field noMargin label={label} htmlFor={id}>
      <Combobox
        id={id}
        isClearable
        placeholder="Choose a result"
        options={sides.map(({ key, label: words }) => ({ value: key, label: words }))}
        value={chosen?.key ?? null}
        onChange={(option) => onChoose(option?.value)}
      />
    </Field>
  );
}

const useStyles = stylesOf((theme) => ({
  compare: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(320px, 100%), 1fr))',
    alignItems: 'end',
    gap: theme.spacing(1.5, 2),
  },
  levels: { gridColumn: '1 / -1', justifySelf: 'start' },
  note: { gridColumn: '1 / -1', margin: 0, color: theme.colors.text.secondary },
}));
