import { useEffect, useRef, useState } from 'react';

import { Alert, Button } from '@grafana/ui';

import { useLive, useMe, type SweepList } from '../../client';
import { NotLoaded } from '../../components/Loading';
import { Section } from '../../components/Section';
import { arrivalOf, lastKnown } from '../../lib/known';
import { COLUMN, sectionGrid, stylesOf } from '../../lib/styles';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { Compare } from './Compare';
import { Earlier } from './Earlier';
import { StartForm } from './StartForm';
import { SweepView } from './SweepView';
import { hasEnded, useRenewSweeps, useSweepList } from '../../components/SweepResult';

/** The Benchmarks page: trials, sweeps and capacity searches on this cluster, from the question to the report. */
export default function Benchmarks() {
  const { value: list, problem } = useSweepList();
  if (!list) {
    return <NotLoaded what="results" problem={problem} />;
  }
  return <Known list={list} />;
}

function Known({ list }: { list: SweepList }) {
  const styles = useStyles();
  const live = useLive(LANE);
  const me = useMe();
  const renew = useRenewSweeps();
  const [chosen, choose] = useChoice('show');
  const { sweeps } = list;
  const under = sweeps.filter(({ state }) => !hasEnded(state));
  const running = live.lane?.state.sweep ?? under.find(({ state }) => state === 'running');
  const ended = sweeps.filter(({ state }) => hasEnded(state));
  const shown = ended.find(({ id }) => id === chosen) ?? ended[0];
  const slo = lastKnown(live, LANE)?.settings.slo;
  const isLost = live.state.status === 'lost';
  const [kind] = useChoice('kind');
  const [asked, open] = useState(kind !== undefined);
  const isOpen = asked || sweeps.length === 0; // results first, where there are any
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (asked) {
      form.current?.focus();
    }
  }, [asked]);
  const newTrial = (
    <Button
      size="sm"
      variant={isOpen || running ? 'secondary' : 'primary'}
      icon={isOpen ? 'angle-up' : 'plus'}
      aria-expanded={isOpen}
      onClick={() => open(!isOpen)}
    >
      New trial
    </Button>
  );
  return (
    <div className={styles.page}>
      {isLost && (
        <Alert severity="warning" title="The load generator does not respond" bottomSpacing={0}>
          The last known state is shown below. A benchmark in progress continues automatically once the load generator
          is back.
        </Alert>
      )}
      {under.length > 0 && (
        <Section
          title="In progress"
          info="The benchmark that is running now. Remaining times are median estimates from the measurements so far."
          actions={newTrial}
        >
          <div className={styles.under}>
            {under.map(({ id }) => (
              <SweepView key={id} id={id} live={live} me={me} onDeleted={() => choose(undefined)} />
            ))}
          </div>
        </Section>
      )}
      {shown && (
        <Section
          title="Result"
          info={
            'What a trial, a sweep or a capacity search has shown. The sentences are generated from ' +
            'its figures; the report has all of them, with method and inputs.'
          }
          actions={under.length === 0 && newTrial}
        >
          <SweepView key={shown.id} id={shown.id} live={live} me={me} onDeleted={() => choose(undefined)} />
        </Section>
      )}
      {isOpen && (
        <div ref={form} tabIndex={-1} className={styles.form}>
          <Section
            title="Start"
            info={
              'Runs spans of the workload on this cluster, each with cold caches, and computes ' +
              'differences and limits with 95 % intervals from them. Nothing here is simulated unless ' +
              'the target itself is.'
            }
          >
            <StartForm
              list={list}
              me={me}
              running={running}
              isLost={isLost}
              seenAt={arrivalOf(live)}
              onStarted={(id) => {
                open(false);
                renew(id);
              }}
            />
          </Section>
        </div>
      )}
      <Section
        title="All results"
        info="Everything measured by this load generator, started here or through its API, newest first."
      >
        <Earlier sweeps={sweeps} shown={shown?.id} onShow={choose} />
      </Section>
      <Section
        title="Compare two results"
        info={
          'Any two results as a report: recorded, imported or measured. B is compared with A, ' +
          'level by level, with intervals where available.'
        }
      >
        <Compare slo={slo} />
      </Section>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  page: { ...sectionGrid(theme), fontSize: 'clamp(14px, 0.9vw, 20px)' },
  form: { minWidth: 0, '&:focus': { outline: 'none' } },
  under: { ...COLUMN, gap: theme.spacing(3) },
}));
