import { Fragment, type ComponentType } from 'react';

import { Arrow, Box, Diagram, Words, type Rect } from '../../components/Diagram';
import type { FeatureId } from './features';

const WIDTH = 400;
const HEIGHT = 150;

const at = (x: number, y: number, width = 110, height = 44): Rect => ({ x, y, width, height });

/** A small picture of a feature. */
export function Drawing({ id, title }: { id: FeatureId; title: string }) {
  const Picture = pictures[id];
  return (
    <Diagram label={`Diagram: ${title}`} picture width={WIDTH} height={HEIGHT}>
      <Picture />
    </Diagram>
  );
}

const pictures: Record<FeatureId, ComponentType> = {
  disaggregated: Disaggregated,
  'kv-routing': KvRouting,
  speculation: Speculation,
  kvbm: BlockManager,
  planner: Planner,
  nixl: Nixl,
};

function Disaggregated() {
  return (
    <>
      <Box rect={at(0, 53, 90)} title="Prompt" />
      <Box rect={at(140, 0)} title="Prefill 1" tone="accent" />
      <Box rect={at(140, 100)} title="Prefill 2" tone="accent" />
      <Box rect={at(290, 0)} title="Decode 1" />
      <Box rect={at(290, 53)} title="Decode 2" />
      <Box rect={at(290, 106)} title="Decode 3" />
      <Arrow path="M 90 70 L 140 30" />
      <Arrow path="M 90 80 L 140 118" />
      <Arrow kind="dotted" path="M 250 22 H 290" />
      <Arrow kind="dotted" path="M 250 112 L 290 80" />
      <Arrow kind="dotted" path="M 250 126 H 290" />
    </>
  );
}

function KvRouting() {
  return (
    <>
      <Box rect={at(0, 53, 100)} title="Router" tone="accent" />
      {[20, 75, 10].map((held, i) => (
        <Fragment key={held}>
          <Box
            rect={at(210, i * 53, 190)}
            title={`holds ${['little', 'most', 'little'][i]}`}
            tone={i === 1 ? 'accent' : 'plain'}
          />
          <Arrow kind={i === 1 ? 'solid' : 'faint'} path={`M 100 75 L 210 ${22 + i * 53}`} />
        </Fragment>
      ))}
    </>
  );
}

function Speculation() {
  return (
    <>
      <Box rect={at(0, 0)} title="Draft" />
      <Box rect={at(0, 100, 400)} title="One pass of the large model" tone="accent" />
      <Arrow path="M 110 22 H 135" />
      {[0, 1, 2].map((i) => (
        <Fragment key={i}>
          <Box rect={at(140 + i * 89, 0, 82)} title={`guess ${i + 1}`} tone={i < 2 ? 'plain' : 'absent'} />
          <Arrow kind={i < 2 ? 'solid' : 'faint'} path={`M ${181 + i * 89} 44 V 100`} />
          <Words x={175 + i * 89} y={76} anchor="end">
            {i < 2 ? 'kept' : 'dropped'}
          </Words>
        </Fragment>
      ))}
    </>
  );
}

function BlockManager() {
  return (
    <>
      {['GPU memory', 'Main memory', 'Local disk', 'Remote storage'].map((tier, i) => (
        <Box key={tier} rect={at(i * 40, i * 37, 200, 34)} title={tier} tone={i === 0 ? 'accent' : 'plain'} />
      ))}
      <Arrow path="M 225 17 C 390 20 390 120 330 128" />
      <Words x={372} y={30} anchor="end">
        offload
      </Words>
      <Words x={110} y={146} anchor="end">
        and back
      </Words>
    </>
  );
}

function Planner() {
  return (
    <>
      <Box rect={at(0, 53)} title="Load" />
      <Box rect={at(145, 53)} title="Planner" tone="accent" />
      <Box rect={at(290, 0)} title="Worker" />
      <Box rect={at(290, 53)} title="Worker" />
      <Box rect={at(290, 106)} title="+ 1" tone="absent" />
      <Arrow path="M 110 75 H 145" />
      <Arrow kind="dashed" path="M 255 68 L 290 30" />
      <Arrow kind="dashed" path="M 255 75 H 290" />
      <Arrow kind="dashed" path="M 255 84 L 290 122" />
    </>
  );
}

function Nixl() {
  return (
    <>
      <Box rect={at(0, 40, 130, 70)} title="Worker A">
        <Words x={12} y={52}>
          GPU memory
        </Words>
      </Box>
      <Box rect={at(270, 40, 130, 70)} title="Worker B">
        <Words x={12} y={52}>
          GPU memory
        </Words>
      </Box>
      {[0, 1, 2].map((i) => (
        <Box key={i} rect={at(152 + i * 34, 62, 24, 24)} tone="accent" />
      ))}
      <Arrow path="M 130 100 H 270" />
      <Words x={200} y={50} anchor="middle">
        KV blocks
      </Words>
    </>
  );
}
