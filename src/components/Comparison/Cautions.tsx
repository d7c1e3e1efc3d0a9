import type { Comparison } from '../../client';
import { number, span } from '../../lib/format';
import { levelText } from '../../lib/level';
import type { Known } from '../../lib/known';
import { servingName, settingName, settingText } from '../../lib/names';
import { stylesOf } from '../../lib/styles';
import { simulationNote } from '../../lib/target';
import { sentence } from '../../lib/text';
import { DataTable } from '../DataTable';
import { OneLine } from './Notes';

interface CautionsProps {
  known: Known;
  comparison: Comparison;
  isLive: boolean;
}

/** What qualifies a comparison, in one line. Opened, it is whole, with the settings that differ from the baseline. */
export function Cautions(props: CautionsProps) {
  const styles = useStyles();
  const cautions = cautionsOf(props);
  const { differences } = props.comparison;
  return cautions.length === 0 ? null : (
    <OneLine
      className={styles.cautions}
      summary={cautions.map(([what, why]) => (
        <>
          <b>{what}</b>
          {why && `: ${why}`}
        </>
      ))}
    >
      {differences.length > 0 && (
        <DataTable
          label="Settings that differ, as a table"
          className={styles.table}
          rows={differences}
          keyOf={({ field }) => field}
          columns={[
            { name: 'Setting', cell: ({ field }) => settingName(field) },
            { name: 'Here', cell: ({ field, live }) => settingText(field, live) },
            { name: 'Recorded', cell: ({ field, baseline }) => settingText(field, baseline) },
          ]}
        />
      )}
    </OneLine>
  );
}

type Caution = [what: string, why?: string];

/** Returns why nothing is judged, which row is not among the columns, and what else may cause a difference. */
function cautionsOf({ known: { lane, time }, comparison, isLive }: CautionsProps): Caution[] {
  const { withheld, not_kept: row, differences } = comparison;
  const cautions: Caution[] = [];
  if (isLive && withheld !== undefined) {
    cautions.push(['No verdict', `${withheld}.${lane.state.mode === 'unknown' ? ' Set it to compare.' : ''}`]);
  }
  if (row) {
    const ago = span((Date.parse(time) - Date.parse(row.time)) / 1000);
    cautions.push(['Not kept', `${servingName(row)} at ${levelText(row.concurrency)}, ${ago} ago: ${row.reason}.`]);
  }
  const note = isLive ? simulationNote(lane.state) : undefined;
  if (note) {
    cautions.push(['Not calibrated', sentence(note)]);
  }
  if (differences.length > 0) {
    const settings = differences.length === 1 ? '1 setting differs' : `${number(differences.length)} settings differ`;
    cautions.push([`${settings} from the baseline`]);
  }
  return cautions;
}

const useStyles = stylesOf((theme) => ({
  cautions: { '& > summary b': { color: theme.colors.warning.text, fontWeight: theme.typography.fontWeightMedium } },
  table: { maxWidth: 720, '& td': { overflowWrap: 'anywhere' } },
}));
