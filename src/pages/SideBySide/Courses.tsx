import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Twin } from '../../client';
import { Curve, CurveSign, scaleFrom } from '../../components/Curve';
import { CautionMark, SIDES, type SideKey } from '../../components/Twin';
import type { Known } from '../../lib/known';
import { timeScale, writers } from '../Stage/FigureView';
import { highest, type Value } from '../Stage/history';
import { clock } from '../Stage/model';
import { changesOfBoth, linesOfBoth, LOOKS, type Histories } from './curves';

interface CoursesProps {
  histories: Histories;
  known: Record<SideKey, Known>;
  names: Record<SideKey, string>;
  /** Whether what was heard last is the present moment. */
  isLive: boolean;
  /** Whose caution stands beside the legend. */
  twin?: Twin;
  /** Without a legend, where one stands above it. */
  bare?: boolean;
}

const courses: Array<[value: Value, name: string]> = [
  ['ttft_p95', 'TTFT p95'],
  ['output_tokens_per_second', 'Output tokens/s'],
];

/** The last ten minutes of both sides, each value in one graph. */
export function Courses(props: CoursesProps) {
  const styles = useStyles2(getStyles);
  const { known, names, twin, bare } = props;
  return (
    <div className={styles.all}>
      {!bare && (
        <div className={styles.legend}>
          {SIDES.map((key) => (
            <span key={key}>
              <CurveSign tone={known[key].lane.state.mode} look={LOOKS[key]} /> {names[key]}
            </span>
          ))}
          <CautionMark twin={twin} />
        </div>
      )}
      <div className={styles.row}>
        {courses.map(([value, name]) => (
          <Course key={value} value={value} name={name} {...props} />
        ))}
      </div>
    </div>
  );
}

function Course({ value, name, histories, known, isLive }: CoursesProps & { value: Value; name: string }) {
  const styles = useStyles2(getStyles);
  const write = writers[value];
  const now = Date.parse(known.a.time);
  const slo = value === 'ttft_p95' ? known.a.settings.slo.ttft : undefined;
  const limit = slo === undefined ? undefined : { at: slo, text: `SLO ${write(slo)}` };
  const top = Math.max(highest(histories.a, value), highest(histories.b, value));
  const measured = Number.isFinite(top);
  const starts = SIDES.flatMap((key) => histories[key].slice(0, 1).map(({ time }) => Date.parse(time)));
  const marks = changesOfBoth(histories);
  return (
    <figure className={styles.course}>
      <figcaption>
        {name} <small>over the preceding 60 s</small>
      </figcaption>
      <div className={styles.curve}>
        <Curve
          label={[
            `${name} of both lanes, the last ten minutes`,
            measured ? `, at most ${write(top)}` : ', not measured',
            ...marks.map(({ at, text }) => `; ${clock(at)} ${text}`),
          ].join('')}
          x={timeScale(now, starts.length > 0 ? Math.min(...starts) : undefined, isLive)}
          y={scaleFrom(Math.max(1.05 * top, limit && measured ? 1.15 * limit.at : (limit?.at ?? 0)), 3, write)}
          lines={linesOfBoth(histories, value)}
          marks={marks}
          limit={limit}
        />
      </div>
    </figure>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  all: css({ display: 'flex', flexDirection: 'column', flex: '1 1 auto', gap: '0.4em', minWidth: 0 }),
  legend: css({ display: 'flex', flexWrap: 'wrap', gap: '0.2em 1.6em', fontSize: '1.4em' }),
  row: css({ display: 'flex', flexWrap: 'wrap', flex: '1 1 auto', gap: '0.8em' }),
  course: css({
    display: 'flex',
    flexDirection: 'column',
    flex: '1 1 34em',
    minWidth: 0,
    margin: 0,
    '& figcaption': { fontSize: '1.5em', fontWeight: theme.typography.fontWeightMedium },
    '& small': { fontSize: '0.9em', fontWeight: 'normal', color: theme.colors.text.secondary },
  }),
  curve: css({ flex: '1 1 0', minHeight: 'var(--least, 14em)', fontSize: '1.3em', padding: '1.6em 6em 1.9em 5.4em' }),
});
