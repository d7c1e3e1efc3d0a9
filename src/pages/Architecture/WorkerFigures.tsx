import { Words } from '../../components/Diagram';
import { stylesOf } from '../../lib/styles';
import type { Layout } from './layout';
import type { Figure } from './parts';

interface WorkerFiguresProps {
  /** The numbers in flight, waiting, KV cache, GPU … */
  figures: Figure[];
  detail: Layout['detail'];
  width: number;
}

/** A worker's numbers, as many as fit. */
export function WorkerFigures({ figures: [inflight, waiting, cache, gpu], detail, width }: WorkerFiguresProps) {
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
