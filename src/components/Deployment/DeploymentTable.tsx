import { cx } from '@emotion/css';

import type { Baseline, Deployment } from '../../client';
import { settingsOf } from '../../lib/deployment';
import { stylesOf, visuallyHidden } from '../../lib/styles';

interface DeploymentTableProps {
  /** The current deployment; undefined while it is not known. */
  live: Deployment | undefined;
  /** The results whose deployment is beside it. */
  recorded: Baseline | undefined;
}

/** The current deployment beside the one of the recorded results: hardware, versions, settings of the engine. */
export function DeploymentTable({ live, recorded }: DeploymentTableProps) {
  const styles = useStyles();
  const now = settingsOf(live ?? {});
  const then = settingsOf(recorded?.deployment ?? {});
  const source = recorded?.notes?.split('\n').at(0);
  const caption = `The live deployment next to that of ${recorded?.title ?? 'the recorded results'}`;
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label={caption}>
      <table className={styles.table}>
        <caption className={styles.hidden}>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">
              Live<small>as configured or reported by the cluster</small>
            </th>
            <th scope="col">
              {recorded?.title ?? 'Recorded'}
              <small>
                {recorded ? (recorded.kind === 'measured' ? 'measured here' : 'as documented') : 'none yet'}
              </small>
            </th>
          </tr>
        </thead>
        <tbody>
          {now.map(({ name, value }, i) => {
            const was = then[i].value;
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td className={cx(value === undefined && styles.absent)}>{value ?? 'not reported'}</td>
                <td className={cx(was === undefined && styles.absent)}>{was ?? 'not recorded'}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {recorded && source && (
        <p className={styles.source}>
          {recorded.title}: {source}
        </p>
      )}
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  hidden: visuallyHidden,
  container: { overflowX: 'auto', '&:focus-visible': { outline: `2px solid ${theme.colors.primary.border}` } },
  table: {
    width: '100%',
    maxWidth: 960,
    fontVariantNumeric: 'tabular-nums',
    '& th, & td': {
      padding: theme.spacing(0.5, 1),
      textAlign: 'left',
      verticalAlign: 'baseline',
      overflowWrap: 'anywhere',
      borderBottom: `1px solid ${theme.colors.border.weak}`,
    },
    '& thead th': { color: theme.colors.text.secondary, verticalAlign: 'bottom' },
    '& thead small': { display: 'block', fontWeight: theme.typography.fontWeightRegular },
    '& tbody th': { fontWeight: theme.typography.fontWeightRegular, color: theme.colors.text.secondary },
    '& th:first-child': { paddingLeft: 0, minWidth: '14ch' },
    // On a phone, words are not broken where they are shorter than a third of its width.
    [theme.breakpoints.down('sm')]: {
      tableLayout: 'fixed',
      fontSize: theme.typography.bodySmall.fontSize,
      '& th, & td': { padding: theme.spacing(0.5) },
      '& th:first-child': { minWidth: 0 },
    },
  },
  source: { maxWidth: 960, margin: theme.spacing(1, 0, 0), color: theme.colors.text.secondary },
  absent: { color: theme.colors.text.secondary, fontStyle: 'italic' },
}));
