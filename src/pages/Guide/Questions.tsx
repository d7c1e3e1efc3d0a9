import { memo, type Dispatch, type SetStateAction } from 'react';

import { Button } from '@grafana/ui';

import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';
import type { Question, QuestionGroup } from './content';
import { Disclosure } from './Disclosure';
import { Markdown, useSources } from './Markdown';
import { References } from './References';

type Opened = ReadonlySet<string>;

interface QuestionsProps {
  groups: QuestionGroup[];
  /** The ids of the visitor's likely questions. */
  likely: string[];
  open: Opened;
  onOpen: Dispatch<SetStateAction<Opened>>;
  isFiltered: boolean;
}

/** The visitors' questions, in their groups. */
export const Questions = memo(function Questions({ groups, likely, open, onOpen, isFiltered }: QuestionsProps) {
  const styles = useStyles();
  const all = groups.flatMap((group) => group.questions.map((question) => question.id));
  const isAllOpen = all.length > 0 && all.every((id) => open.has(id));
  return (
    <Section
      title="Questions"
      info="What visitors ask, with answers to say aloud. Figures are live, recorded or published, and labeled as such."
      actions={
        <Button
          variant="secondary"
          size="sm"
          disabled={all.length === 0}
          onClick={() => onOpen(isAllOpen ? new Set() : new Set(all))}
        >
          {isAllOpen ? 'Close all' : 'Open all'}
        </Button>
      }
    >
      {groups.length === 0 && <p>No matching questions. Try fewer or different words.</p>}
      {groups.map((group) => (
        <div key={group.id} className={styles.group}>
          <h3>
            {group.title} <small>{isFiltered ? `${group.questions.length} found` : group.questions.length}</small>
          </h3>
          {group.questions.map((question) => (
            <Asked
              key={question.id}
              question={question}
              isLikely={likely.includes(question.id)}
              open={open.has(question.id)}
              onOpen={onOpen}
            />
          ))}
        </div>
      ))}
    </Section>
  );
});

interface AskedProps {
  question: Question;
  isLikely: boolean;
  open: boolean;
  onOpen: QuestionsProps['onOpen'];
}

const Asked = memo(function Asked({ question, isLikely, open, onOpen }: AskedProps) {
  const styles = useStyles();
  const toggle = () =>
    onOpen((before) => (open ? closeQuestion(before, question.id) : new Set([...before, question.id])));
  return (
    <Disclosure
      id={`question-${question.id}`}
      title={question.title}
      mark={isLikely && <small className={styles.likely}>likely</small>}
      open={open}
      onToggle={toggle}
    >
      <Markdown of={question.blocks} />
      <Sources question={question} />
    </Disclosure>
  );
});

function closeQuestion(opened: Opened, id: string): Opened {
  return new Set(Array.from(opened).filter((one) => one !== id));
}

/** The sources of the answer's published part, and further reading. */
function Sources({ question }: { question: Question }) {
  const quoted = useSources(question.blocks).filter(
    ({ title }) => !question.sources.some((source) => source.title === title)
  );
  const sources = [...question.sources, ...quoted];
  return (
    <>
      {sources.length > 0 && <References title="Published, not measured here" of={sources} />}
      {question.links.length > 0 && <References title="Read on" of={question.links} />}
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  group: {
    '& + &': { marginTop: theme.spacing(3) },
    '& > h3': { ...theme.typography.h5, margin: theme.spacing(0, 0, 0.5), color: theme.colors.text.secondary },
  },
  likely: {
    marginLeft: 'auto',
    padding: theme.spacing(0, 1),
    border: `1px solid ${theme.colors.primary.border}`,
    borderRadius: theme.shape.radius.pill,
    color: theme.colors.primary.text,
  },
}));
