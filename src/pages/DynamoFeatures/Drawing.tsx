import { Arrow, Box, Diagram, Words, type LineKind, type Rect } from '../../components/Diagram';
import type { FeatureId } from './features';

const WIDTH = 400;
const HEIGHT = 150;

const at = (x: number, y: number, width = 110, height = 44): Rect => ({ x, y, width, height });

/** The parts of a picture. */
interface Picture {
  boxes: Array<[rect: Rect, title?: string, tone?: 'accent' | 'absent']>;
  arrows: Array<[path: string, kind?: LineKind]>;
  /** Words beside the boxes, by their ends or their middles. */
  words?: Array<[x: number, y: number, text: string, anchor?: 'start' | 'middle' | 'end']>;
}

/** A small picture of a feature. */
export function Drawing({ id, title }: { id: FeatureId; title: string }) {
  const { boxes, arrows, words = [] } = pictures[id];
  return (
    <Diagram label={`Diagram: ${title}`} picture width={WIDTH} height={HEIGHT}>
      {boxes.map(([rect, name, tone], i) => (
        <Box key={i} rect={rect} title={name} tone={tone} />
      ))}
      {arrows.map(([path, kind]) => (
        <Arrow key={path} path={path} kind={kind} />
      ))}
      {words.map(([x, y, text, anchor = 'end']) => (
        <Words key={`${x} ${y}`} x={x} y={y} anchor={anchor}>
          {text}
        </Words>
      ))}
    </Diagram>
  );
}

const pictures: Record<FeatureId, Picture> = {
  disaggregated: {
    boxes: [
      [at(0, 53, 90), 'Prompt'],
      [at(140, 0), 'Prefill 1', 'accent'],
      [at(140, 100), 'Prefill 2', 'accent'],
      [at(290, 0), 'Decode 1'],
      [at(290, 53), 'Decode 2'],
      [at(290, 106), 'Decode 3'],
    ],
    arrows: [
      ['M 90 70 L 140 30'],
      ['M 90 80 L 140 118'],
      ['M 250 22 H 290', 'dotted'],
      ['M 250 112 L 290 80', 'dotted'],
      ['M 250 126 H 290', 'dotted'],
    ],
  },
  'kv-routing': {
    boxes: [
      [at(0, 53, 100), 'Router', 'accent'],
      [at(210, 0, 190), 'holds little'],
      [at(210, 53, 190), 'holds most', 'accent'],
      [at(210, 106, 190), 'holds little'],
    ],
    arrows: [['M 100 75 L 210 22', 'faint'], ['M 100 75 L 210 75'], ['M 100 75 L 210 128', 'faint']],
  },
  speculation: {
    boxes: [
      [at(0, 0), 'Draft'],
      [at(0, 100, 400), 'One pass of the large model', 'accent'],
      [at(140, 0, 82), 'guess 1'],
      [at(229, 0, 82), 'guess 2'],
      [at(318, 0, 82), 'guess 3', 'absent'],
    ],
    arrows: [['M 110 22 H 135'], ['M 181 44 V 100'], ['M 270 44 V 100'], ['M 359 44 V 100', 'faint']],
    words: [
      [175, 76, 'kept'],
      [264, 76, 'kept'],
      [353, 76, 'dropped'],
    ],
  },
  kvbm: {
    boxes: [
      [at(0, 0, 200, 34), 'GPU memory', 'accent'],
      [at(40, 37, 200, 34), 'Main memory'],
      [at(80, 74, 200, 34), 'Local disk'],
      [at(120, 111, 200, 34), 'Remote storage'],
    ],
    arrows: [['M 225 17 C 390 20 390 120 330 128']],
    words: [
      [372, 30, 'offload'],
      [110, 146, 'and back'],
    ],
  },
  planner: {
    boxes: [
      [at(0, 53), 'Load'],
      [at(145, 53), 'Planner', 'accent'],
      [at(290, 0), 'Worker'],
      [at(290, 53), 'Worker'],
      [at(290, 106), '+ 1', 'absent'],
    ],
    arrows: [
      ['M 110 75 H 145'],
      ['M 255 68 L 290 30', 'dashed'],
      ['M 255 75 H 290', 'dashed'],
      ['M 255 84 L 290 122', 'dashed'],
    ],
  },
  nixl: {
    boxes: [
      [at(0, 40, 130, 70), 'Worker A'],
      [at(270, 40, 130, 70), 'Worker B'],
      [at(152, 62, 24, 24), undefined, 'accent'],
      [at(186, 62, 24, 24), undefined, 'accent'],
      [at(220, 62, 24, 24), undefined, 'accent'],
    ],
    arrows: [['M 130 100 H 270']],
    words: [
      [12, 92, 'GPU memory', 'start'],
      [282, 92, 'GPU memory', 'start'],
      [200, 50, 'KV blocks', 'middle'],
    ],
  },
};
