import { useLive, useMe } from '../../client';
import { lastKnown } from '../../lib/known';
import { COLUMN, stylesOf, WRAP } from '../../lib/styles';
import { ClientVerdict, SnapshotAge, Status, Troubles } from '../Status';
import { Figures } from './Figures';
import { Growing, Held, SweepNotice } from './Held';
import { ModeProgress } from './ModeProgress';
import { Operate } from './Operate';

interface ControlsProps {
  lane: string;
  /** Omits Start, Stop, Drain, the line of state and the troubles, where another part of the page has them. */
  bare?: boolean;
}

/** Starts, stops and controls a lane's workload. Users without permission see its figures. */
export function Controls({ lane, bare }: ControlsProps) {
  const styles = useStyles();
  const live = useLive(lane);
  const me = useMe();
  const known = lastKnown(live, lane);
  const change = known?.lane.state.mode_change;
  return (
    <section className={styles.controls} aria-label="Workload controls">
      <div className={styles.head}>
        {!bare && <Status live={live} lane={lane} />}
        <Figures lane={live.lane} withWorkload={!me?.canOperate} />
        {!bare && <SnapshotAge state={live.state} />}
        {!bare && <ClientVerdict state={live.state} />}
      </div>
      {!bare && <Troubles live={live} withoutNotices />}
      {live.lane && <Growing {...live.lane} />}
      {!me?.canOperate && known?.lane.state.sweep && <SweepNotice sweep={known.lane.state.sweep} />}
      {!me?.canOperate && live.lane && <Held lane={live.lane} />}
      {me?.canOperate && <Operate live={live} lane={lane} bare={bare} />}
      {!me?.canOperate && known && change && <ModeProgress change={change} time={known.time} />}
    </section>
  );
}

const useStyles = stylesOf((theme) => ({
  controls: { ...COLUMN, gap: theme.spacing(1.5) },
  head: { ...WRAP, alignItems: 'baseline', justifyContent: 'space-between', gap: theme.spacing(0.5, 3) },
}));
