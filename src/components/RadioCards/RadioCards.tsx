import { useId, type ReactNode } from 'react';

import { COLUMN, FIELDSET, stylesOf } from '../../lib/styles';

interface Card<T extends string> {
  value: T;
  title: string;
  text: string;
  note?: ReactNode;
}

interface RadioCardsProps<T extends string> {
  legend: string;
  cards: Array<Card<T>>;
  value: T;
  onChange(value: T): void;
}

/** A choice of one among some options, each of which is explained. */
export function RadioCards<T extends string>({ legend, cards, value, onChange }: RadioCardsProps<T>) {
  const styles = useStyles();
  const name = useId();
  return (
    <fieldset className={styles.cards}>
      <legend className={styles.legend}>{legend}</legend>
      {cards.map((card) => (
        <label key={card.value} className={styles.card}>
          <input
            type="radio"
            name={name}
            value={card.value}
            checked={card.value === value}
            onChange={() => onChange(card.value)}
          />
          <span>
            <b>{card.title}</b>
            <span>{card.text}</span>
            {card.note && <small>{card.note}</small>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

const useStyles = stylesOf((theme) => ({
  cards: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(200px, 100%), 1fr))',
    gap: theme.spacing(1),
    ...FIELDSET,
  },
  legend: { fontSize: 'inherit', marginBottom: theme.spacing(0.5), color: theme.colors.text.secondary },
  card: {
    display: 'flex',
    alignItems: 'baseline',
    gap: theme.spacing(1),
    padding: theme.spacing(1.5),
    border: `1px solid ${theme.colors.border.medium}`,
    borderRadius: theme.shape.radius.default,
    cursor: 'pointer',
    fontWeight: theme.typography.fontWeightRegular,
    textWrap: 'pretty',
    '& > span': { ...COLUMN, gap: theme.spacing(0.5) },
    '& b': { fontWeight: theme.typography.fontWeightMedium },
    '& small': { color: theme.colors.text.secondary },
    '&:hover': { background: theme.colors.action.hover },
    '&:has(input:checked)': {
      borderColor: theme.colors.primary.border,
      background: theme.colors.background.secondary,
    },
    '&:has(input:focus-visible)': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: 2 },
    '& input': { accentColor: theme.colors.primary.main, margin: 0 },
  },
}));
