import type { Sweep } from '../../client';
import { COLUMN, stylesOf } from '../../lib/styles';
import { CapacityView } from './CapacityView';
import { Differences } from './Differences';

/** What a sweep shows so far: in sentences, of a trial each difference, and of a search what each mode sustains. */
export function Findings({ sweep: { id, words, trial, capacity, request } }: { sweep: Sweep }) {
  const styles = useStyles();
  return (
    <>
      {words.length > 0 && (
        <div className={styles.words} role="group" aria-label="Findings">
          {words.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </div>
      )}
      {trial && <Differences key={id} trial={trial} request={request} />}
      {capacity && <CapacityView capacity={capacity} request={request} />}
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  words: {
    ...COLUMN,
    gap: theme.spacing(0.5),
    maxWidth: '100ch',
    padding: theme.spacing(1, 1.5),
    borderLeft: `3px solid ${theme.colors.primary.border}`,
    background: theme.colors.background.secondary,
    textWrap: 'pretty',
    '& p': { margin: 0 },
    '& p:first-child': { ...theme.typography.h5, margin: 0 },
  },
}));
