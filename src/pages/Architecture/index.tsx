import React, { memo, useState } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { LoadingPlaceholder, RadioButtonGroup, useStyles2 } from '@grafana/ui';

import { useLive } from '../../client';
import { targetNotes, useTarget } from '../../components/Diagram';
import { Section } from '../../components/Section';
import { lastKnown } from '../../lib/known';
import { vendor } from '../../vendor';
import { LANE } from '../lane';
import { Legend } from './Legend';
import { PartList } from './PartList';
import { PartPanel } from './PartPanel';
import { inOrder, requestPath, type Part } from './parts';
import { PlatformLayer } from './PlatformLayer';
import { platformParts } from './platform';
import { RequestLayer } from './RequestLayer';
import { Traffic } from './Traffic';
import { useFlow } from './useFlow';
import { useStillness } from './useStillness';

type Layer = 'request' | 'platform';

const layers = [
  { label: 'Request path', value: 'request' as const },
  { label: 'Platform', value: 'platform' as const },
];

const NO_WORKERS: never[] = [];

/** The architecture page: a drawing of what runs, with its numbers on it. */
export default function Architecture() {
  const styles = useStyles2(getStyles);
  const live = useLive(LANE);
  const known = lastKnown(live, LANE);
  const target = useTarget(live, LANE);
  const [layer, setLayer] = useState<Layer>('request');
  const [selected, select] = useState('router');
  const still = useStillness(live);
  const shares = useFlow(live.lane?.cluster.workers ?? NO_WORKERS, live.lane && known?.time);
  const isLive = live.lane !== undefined;
  const path = requestPath(known?.lane, isLive, target);
  const groups = platformParts(vendor.platform, known?.lane, isLive, target);
  const parts = layer === 'request' ? inOrder(path) : groups.flatMap(({ group, items }) => [group, ...items]);
  const note = layer === 'platform' ? vendor.platform.text : targetNotes[target.kind];
  return (
    <Section
      title={layer === 'request' ? 'The way of a request' : vendor.platform.name}
      info="Every part of the running system with its numbers; choose one and it explains itself. Rates are the load generator’s own, the cluster’s numbers come from its metrics."
      actions={<LayerSwitch layer={layer} onChange={setLayer} />}
    >
      {live.state.status === 'loading' ? (
        <LoadingPlaceholder text="Waiting for the first snapshot…" />
      ) : (
        <>
          {note && <p className={styles.note}>{note}</p>}
          <div className={styles.row}>
            <div className={styles.drawing}>
              {layer === 'request' ? (
                <RequestLayer
                  path={path}
                  missing={known?.lane.cluster.problem}
                  selected={selected}
                  onSelect={select}
                  traffic={
                    still || !live.lane
                      ? undefined
                      : ({ ways }) => (
                          <Traffic
                            ways={ways}
                            shares={shares}
                            requestsPerSecond={live.lane?.window.requests_per_second ?? 0}
                          />
                        )
                  }
                />
              ) : (
                <PlatformLayer groups={groups} selected={selected} onSelect={select} />
              )}
              {layer === 'request' && <Legend still={still} />}
              <PartList parts={parts} />
            </div>
            <PartPanel part={chosen(parts, selected)} />
          </div>
        </>
      )}
    </Section>
  );
}

interface LayerSwitchProps {
  layer: Layer;
  onChange(layer: Layer): void;
}

/** Drawn anew only when it changes: Grafana's radio buttons get new ids each time. */
const LayerSwitch = memo(function LayerSwitch({ layer, onChange }: LayerSwitchProps) {
  return <RadioButtonGroup aria-label="Layer" options={layers} value={layer} onChange={onChange} />;
});

/** A part that went away, such as a worker, gives way to the first one. */
function chosen(parts: Part[], id: string): Part {
  return parts.find((p) => p.id === id) ?? parts[0];
}

const getStyles = (theme: GrafanaTheme2) => ({
  note: css({ color: theme.colors.text.secondary, marginBottom: theme.spacing(1) }),
  row: css({ display: 'flex', flexWrap: 'wrap', alignItems: 'flex-start', gap: theme.spacing(2) }),
  drawing: css({ flex: '4 1 600px', minWidth: 0 }),
});
