import { memo, useMemo } from 'react';

import { Arrow, Diagram, Words } from '../../components/Diagram';
import { stylesOf } from '../../lib/styles';
import { PartBox, type Choosing } from './PartBox';
import { Traffic } from './Traffic';
import type { Load } from './chaser';
import { layOut, type Layout } from './layout';
import type { Figure, RequestPath } from './parts';

interface RequestLayerProps extends Choosing {
  path: RequestPath;
  /** Where the router reads the workers, and why, if workers are missing. */
  missing?: string;
  /** The traffic along the paths; absent where nothing moves. */
  traffic?: Load;
}

/** The request path and the three planes. */
export function RequestLayer({ path, missing, traffic, selected, onSelect }: RequestLayerProps) {
  const count = path.workers.length;
  const layout = useMemo(() => layOut(count), [count]);
  const choosing = { selected, onSelect };
  return (
    <Diagram label="Request path" width={layout.width} height={layout.height} minWidth={800}>
      <Lines layout={layout} />
      {traffic && <Traffic layout={layout} {...traffic} />}
      <PartBox part={path.client} rect={layout.client} figures={2} {...choosing} />
      <PartBox part={path.enduser} rect={layout.enduser} figures={0} {...choosing} />
      <PartBox part={path.frontend} rect={layout.frontend} figures={2} {...choosing} />
      <PartBox part={path.router} rect={layout.router} figures={2} accent {...choosing} />
      <PartBox part={path.discovery} rect={layout.discovery} figures={2} inline {...choosing} />
      <PartBox part={path.request} rect={layout.request} figures={0} {...choosing} />
      <PartBox part={path.events} rect={layout.events} figures={1} inline {...choosing} />
      <PartBox part={path.prometheus} rect={layout.prometheus} figures={1} small {...choosing} />
      {path.workers.map((worker, i) => (
        <PartBox
          key={worker.id}
          part={worker}
          rect={layout.workers[i]}
          figures={0}
          letters={layout.workers[i].width / 10}
          {...choosing}
        >
          <WorkerFigures figures={worker.figures} detail={layout.detail} width={layout.workers[i].width} />
        </PartBox>
      ))}
      {path.more && (
        <Words x={layout.width} y={layout.events.y - 22} anchor="end">
          {path.more}
        </Words>
      )}
      {path.workers.length === 0 && (
        <Words x={layout.width} y={layout.router.y + layout.router.height / 2} anchor="end">
          {missing ?? 'No workers reported'}
        </Words>
      )}
    </Diagram>
  );
}

/** The lines between the parts. They change only with the number of workers. */
const Lines = memo(function Lines({ layout: l }: { layout: Layout }) {
  const y = l.frontend.y + l.frontend.height / 2;
  const under = l.frontend.y + l.frontend.height;
  const column = l.workers[0];
  const end = l.workers.at(-1);
  return (
    <>
      <Arrow path={`M ${l.client.width / 2} ${l.enduser.y + l.enduser.height} V ${l.client.y}`} />
      <Arrow path={`M ${l.client.width} ${y} H ${l.frontend.x}`} />
      <Arrow path={`M ${l.frontend.x + l.frontend.width} ${y} H ${l.router.x}`} />
      {l.legs.map((leg) => (
        <Arrow key={leg} path={leg} />
      ))}
      <Arrow kind="faint" plain path={`M 450 ${y} V ${l.request.y}`} />
      <Arrow kind="dashed" path={`M 335 ${l.discovery.height} V ${l.frontend.y}`} />
      {column && <Arrow kind="dashed" path={`M 870 ${l.discovery.height} V ${column.y}`} />}
      {end && <Arrow kind="dotted" path={`M 870 ${end.y + end.height} V ${l.events.y}`} />}
      <Arrow kind="dotted" path={`M 620 ${l.events.y} V ${l.router.y + l.router.height}`} />
      <Arrow kind="faint" path={`M ${l.prometheus.width} ${l.prometheus.y + 32} H 290 V ${under}`} />
    </>
  );
});

interface WorkerFiguresProps {
  /** The numbers in flight, waiting, KV cache, GPU … */
  figures: Figure[];
  detail: Layout['detail'];
  width: number;
}

/** A worker's numbers, as many as fit. */
function WorkerFigures({ figures: [inflight, waiting, cache, gpu], detail, width }: WorkerFiguresProps) {
  if (detail === 'name') {
    return (
      <Words x={12} y={50}>
        {`${inflight.value} ${inflight.name}`}
      </Words>
    );
  }
  if (detail === 'line') {
    return (
      <Words x={12} y={50}>
        {`${inflight.value} ${inflight.name} · cache ${cache.value} · GPU ${gpu.value}`}
      </Words>
    );
  }
  return (
    <>
      <Words x={12} y={58} size="value">
        {inflight.value}
      </Words>
      <Words x={56} y={58}>
        {inflight.name}
      </Words>
      <Words x={width - 12} y={58} anchor="end">
        {`${waiting.value} ${waiting.name}`}
      </Words>
      <Meter x={12} y={80} width={width - 24} figure={cache} />
      <Meter x={12} y={100} width={width - 24} figure={gpu} />
    </>
  );
}

interface MeterProps {
  x: number;
  y: number;
  width: number;
  figure: Figure;
}

const NAME = 84;
const VALUE = 62;

/** A ratio as a bar, between its name and its value. */
function Meter({ x, y, width, figure: { name, value, share = 0 } }: MeterProps) {
  const styles = useStyles();
  const room = width - NAME - VALUE;
  return (
    <>
      <Words x={x} y={y}>
        {name}
      </Words>
      <rect className={styles.track} x={x + NAME} y={y - 9} width={room} height={8} rx={2} />
      <rect className={styles.bar} x={x + NAME} y={y - 9} width={room * Math.min(1, share)} height={8} rx={2} />
      <Words x={x + width} y={y} anchor="end">
        {value}
      </Words>
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  track: { fill: theme.colors.border.medium },
  bar: { fill: theme.colors.primary.text },
}));
