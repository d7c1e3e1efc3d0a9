import { Fragment, useState } from 'react';

import { Badge, Button } from '@grafana/ui';

import { Arrow, Box, Diagram, Words } from '../../components/Diagram';
import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';
import { EXAMPLE } from './example';
import { LoopTable } from './LoopTable';

const STEPS = EXAMPLE.steps;

/** The loop from event to choice for the specification's worked example, step by step. */
export function Loop() {
  const styles = useStyles();
  const [step, setStep] = useState(0);
  return (
    <Section
      title="The loop behind a decision"
      info={
        'Event, index, cost, choice: a worked example of a request with 100 blocks and three ' +
        'workers. The numbers are examples, not measurements.'
      }
      actions={<Badge text="Example" color="blue" />}
    >
      <Drawing step={step} />
      <p className={styles.text} aria-live="polite">
        <b>{STEPS[step].title}.</b> {STEPS[step].text}
      </p>
      <LoopTable step={step} />
      <div className={styles.buttons}>
        <Button variant="secondary" disabled={step === 0} onClick={() => setStep(step - 1)}>
          Previous
        </Button>
        <Button variant="secondary" disabled={step === STEPS.length - 1} onClick={() => setStep(step + 1)}>
          Next
        </Button>
      </div>
    </Section>
  );
}

const BOX = { width: 230, height: 64 };
const PITCH = 310;

/** The steps in a row, the last one leading back to the first. */
function Drawing({ step }: { step: number }) {
  const width = (STEPS.length - 1) * PITCH + BOX.width;
  const back = `M ${width - BOX.width / 2} ${BOX.height} v 26 H ${BOX.width / 2} v -26`;
  return (
    <Diagram
      label={`The loop: ${STEPS.map((s) => s.title).join(', ')}; now at ${STEPS[step].title}`}
      picture
      width={width}
      height={96}
      minWidth={760}
    >
      <Arrow path={back} kind={step === STEPS.length - 1 ? 'solid' : 'faint'} />
      {STEPS.map(({ title, summary }, i) => (
        <Fragment key={title}>
          <Box rect={{ ...BOX, x: i * PITCH, y: 0 }} title={`${i + 1} ${title}`} tone={i === step ? 'accent' : 'plain'}>
            <Words x={12} y={50}>
              {summary}
            </Words>
          </Box>
          {i > 0 && (
            <Arrow
              path={`M ${(i - 1) * PITCH + BOX.width} ${BOX.height / 2} H ${i * PITCH}`}
              kind={i === step ? 'solid' : 'faint'}
            />
          )}
        </Fragment>
      ))}
    </Diagram>
  );
}

const useStyles = stylesOf((theme) => ({
  text: {
    fontSize: '1.15em',
    minHeight: '3em',
    margin: theme.spacing(1, 0),
    textWrap: 'pretty',
    '& b': { fontWeight: theme.typography.fontWeightMedium },
  },
  buttons: { display: 'flex', gap: theme.spacing(1), marginTop: theme.spacing(1) },
}));
