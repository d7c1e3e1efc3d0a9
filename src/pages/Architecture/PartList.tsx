import { Fold } from '../../components/Fold';
import { stylesOf } from '../../lib/styles';
import { sentenceOf, type Part } from './parts';

/** The drawing as a list of sentences, for screen readers and for reading. */
export function PartList({ parts }: { parts: Part[] }) {
  const styles = useStyles();
  return (
    <Fold label="The diagram as a list">
      <ul className={styles.list}>
        {parts.map((part) => (
          <li key={part.id}>
            <b>{sentenceOf(part)}.</b> {part.presence.why} {part.text}
          </li>
        ))}
      </ul>
    </Fold>
  );
}

const useStyles = stylesOf((theme) => ({
  list: {
    margin: theme.spacing(1, 0, 0, 3),
    fontVariantNumeric: 'tabular-nums',
    '& b': { fontWeight: theme.typography.fontWeightMedium },
  },
}));
