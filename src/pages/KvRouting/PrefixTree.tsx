import { cx } from '@emotion/css';

import { Arrow, Diagram, Words } from '../../components/Diagram';
import { DASH, number } from '../../lib/format';
import { stylesOf, workerColors, WRAP } from '../../lib/styles';
import type { Branch, Tree } from './tree';

const WIDTH = 1400;
const ROW = 58;
const BAR = 18;
const TRUNK = 60;

interface PrefixTreeProps {
  tree: Tree;
  topic: string;
  /** Other conversations in progress on the same starter. */
  siblings: number;
}

/** A conversation's prompts: a trunk that others share, and a branch for each turn. */
export function PrefixTree({ tree, topic, siblings }: PrefixTreeProps) {
  const x = (tokens: number) => (tree.tokens === 0 ? 0 : (tokens / tree.tokens) * WIDTH);
  const rows = tree.branches.length + tree.others.length;
  return (
    <Diagram label="Prefix tree of a conversation" width={WIDTH} height={TRUNK + rows * ROW} minWidth={1000}>
      <Trunk tree={tree} topic={topic} siblings={siblings} x={x} />
      {tree.branches.map((branch, i) => (
        <g key={branch.number} transform={`translate(0 ${TRUNK + i * ROW})`}>
          <BranchRow branch={branch} x={x} first={i === 0} />
        </g>
      ))}
      {tree.others.map(({ number: n, state, workerName }, i) => (
        <g key={n} transform={`translate(0 ${TRUNK + (tree.branches.length + i) * ROW})`}>
          <Words x={0} y={32}>
            {`Turn ${n}: ${state}${workerName ? ` on ${workerName}, counted when it ends` : ''}`}
          </Words>
        </g>
      ))}
    </Diagram>
  );
}

interface TrunkProps extends PrefixTreeProps {
  x(tokens: number): number;
}

/** The starter. Its length is what a worker held of the first prompt, if that is known. */
function Trunk({ tree, topic, siblings, x }: TrunkProps) {
  const styles = useStyles();
  const length = tree.shared ?? tree.branches[0]?.prompt ?? 0;
  const others =
    siblings === 0 ? 'no other active conversation uses it' : `${siblings} more active conversations use it`;
  return (
    <>
      <Words x={0} y={16} size="title">
        {`Opening text “${topic}”: ${others}`}
      </Words>
      <rect className={styles.trunk} x={0} y={28} width={Math.max(4, x(length))} height={BAR} rx={3} />
      {siblings > 0 && <Arrow kind="dashed" path={`M ${x(length)} 37 h ${Math.min(60, WIDTH - x(length))}`} />}
    </>
  );
}

function BranchRow({ branch, x, first }: { branch: Branch; x(tokens: number): number; first: boolean }) {
  const styles = useStyles();
  const { number: n, from, prompt, cached, output, worker, workerName, moved } = branch;
  const held = cached ?? 0;
  const counts =
    `${number(prompt)} prompt tokens: ${number(cached)} cached, ` +
    `${cached === undefined ? DASH : number(prompt - cached)} computed`;
  return (
    <>
      {!first && <Arrow kind="faint" path={`M ${x(from)} -8 V 32`} />}
      <Words x={0} y={24}>
        {`Turn ${n} on ${workerName ?? 'an unknown worker'}${moved ? ' (moved)' : ''}, ${counts}`}
      </Words>
      <rect className={cx(styles.held, color(styles, worker))} x={0} y={32} width={x(held)} height={BAR} />
      <rect className={styles.computed} x={x(held)} y={32} width={Math.max(2, x(prompt) - x(held))} height={BAR} />
      <rect className={styles.answer} x={x(prompt)} y={33} width={Math.max(0, x(output) - 1)} height={BAR - 2} />
    </>
  );
}

function color(styles: ReturnType<typeof useStyles>, worker: number): string {
  return worker < 0 ? styles.unknown : [styles.worker0, styles.worker1, styles.worker2, styles.worker3][worker % 4];
}

/** The legend of the bars' colors: those of the tree's workers, and of the other parts. */
export function TreeLegend({ tree: { branches } }: { tree: Tree }) {
  const styles = useStyles();
  const sample = (className: string) => (
    <svg width={28} height={12} aria-hidden="true">
      <rect className={className} x={1} y={1} width={26} height={10} />
    </svg>
  );
  const workers = new Map(branches.map(({ worker, workerName }) => [worker, workerName ?? 'an unknown worker']));
  return (
    <p className={styles.legend}>
      {Array.from(workers, ([worker, name]) => (
        <span key={worker}>
          {sample(color(styles, worker))} cached on {name}
        </span>
      ))}
      <span>{sample(styles.computed)} computed</span>
      <span>{sample(styles.answer)} answer: part of the next prompt</span>
      <span>{sample(styles.trunk)} opening text: the part that was already cached</span>
    </p>
  );
}

const useStyles = stylesOf((theme) => {
  const [worker0, worker1, worker2, worker3] = workerColors(theme).map((fill) => ({ fill }));
  return {
    trunk: { fill: theme.colors.text.secondary },
    held: { stroke: 'none' },
    worker0,
    worker1,
    worker2,
    worker3,
    unknown: { fill: theme.colors.text.disabled },
    computed: { fill: theme.colors.text.primary },
    answer: { fill: 'none', stroke: theme.colors.text.secondary, strokeDasharray: '3 3' },
    legend: {
      ...WRAP,
      gap: theme.spacing(0.5, 2),
      margin: theme.spacing(1, 0, 0),
      color: theme.colors.text.secondary,
      fontSize: theme.typography.bodySmall.fontSize,
    },
  };
});
