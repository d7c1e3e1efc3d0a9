import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Cluster } from '../../client';
import { shorten } from '../../components/Diagram';
import { unavailable } from '../../components/Kpis';
import { DASH, number } from '../../lib/format';
import { silence, whyUnread } from '../../lib/unread';
import { toBars } from './model';

interface BarsProps {
  /** Undefined while the load generator is unreachable: then nothing live is shown. */
  cluster?: Cluster;
  /** What those hear who do not see it, where there are several. */
  label?: string;
}

/** How long a name may be beside its bar, in letters. */
const LETTERS = 20;

/** The requests in flight at each worker, as bars. */
export function Bars({ cluster, label = 'Workers' }: BarsProps) {
  const styles = useStyles2(getStyles);
  const { bars, more } = cluster ? toBars(cluster) : { bars: [], more: 0 };
  const why = cluster ? (unavailable(cluster) ?? (bars.length === 0 ? 'No worker has reported yet' : undefined)) : DASH;
  return (
    <section className={styles.part} aria-label={label}>
      <h2>
        Requests in flight per worker
        {more > 0 && !why && (
          <small>
            , the busiest {bars.length}; {number(more)} more not shown
          </small>
        )}
      </h2>
      {why ? (
        <div>{why}</div>
      ) : (
        <ul className={styles.bars}>
          {bars.map(({ name, inflight, share }) => (
            <li key={name}>
              <span className={styles.name} title={name}>
                {shorten(name, LETTERS)}
              </span>
              <span className={styles.track} aria-hidden="true">
                <span className={styles.bar} style={{ width: `${100 * share}%` }} />
              </span>
              <b>{inflight === undefined ? silence(cluster && whyUnread(cluster, 'workers')) : number(inflight)}</b>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  part: css({
    padding: '0.8em 1.4em',
    borderRadius: '0.5em',
    background: theme.colors.background.primary,
    fontVariantNumeric: 'tabular-nums',
    '& h2': { fontSize: '1.5em', lineHeight: 1.3, margin: 0, color: theme.colors.text.secondary },
    '& h2 small': { fontSize: '1em' },
    '& > div': { fontSize: '1.7em' },
  }),
  bars: css({
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(17em, 100%), 1fr))',
    gap: '0 1.6em',
    margin: 0,
    padding: 0,
    listStyle: 'none',
    fontSize: '1.6em',
    lineHeight: 1.35,
    '& li': { display: 'grid', gridTemplateColumns: 'fit-content(65%) 1fr auto', alignItems: 'center', gap: '0.6em' },
    '& b': { fontWeight: theme.typography.fontWeightMedium, minWidth: '2ch', textAlign: 'right' },
  }),
  name: css({ overflow: 'hidden', textOverflow: 'ellipsis', whiteSpace: 'nowrap' }),
  track: css({ height: '0.7em', borderRadius: '0.2em', background: theme.colors.background.secondary }),
  bar: css({ display: 'block', height: '100%', borderRadius: 'inherit', background: theme.colors.primary.main }),
});
