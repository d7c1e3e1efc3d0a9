import type { ReactNode } from 'react';

import { stylesOf, WRAP } from '../../lib/styles';

/** A term with its value, and a remark on it. */
export type Fact = [term: string, value: ReactNode, remark?: string];

/** Terms beside their values, in as many lines as needed. */
export function Facts({ of }: { of: Fact[] }) {
  const styles = useStyles();
  return (
    <dl className={styles.facts}>
      {of.map(([term, value, remark]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>
            {value}
            {remark && <small> {remark}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

const useStyles = stylesOf((theme) => ({
  facts: {
    ...WRAP,
    gap: theme.spacing(0.25, 3),
    margin: 0,
    fontVariantNumeric: 'tabular-nums',
    '& > div': { display: 'flex', gap: theme.spacing(0.75) },
    '& dt': { color: theme.colors.text.secondary, fontWeight: theme.typography.fontWeightRegular },
    '& dd': { margin: 0, fontWeight: theme.typography.fontWeightMedium },
    '& small': { color: theme.colors.text.secondary },
  },
}));
