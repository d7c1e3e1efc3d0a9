import { cx } from '@emotion/css';

import { LINE, stylesOf } from '../../lib/styles';
import { Drawing } from './Drawing';
import type { Feature, Usage } from './features';

const uses: Record<Usage['is'], string> = {
  yes: 'In use here',
  no: 'Not in use here',
  unknown: 'Unknown here',
};

/** One feature of Dynamo. */
export function Card({ feature: { id, title, text, published }, usage }: { feature: Feature; usage: Usage }) {
  const styles = useStyles();
  return (
    <article className={styles.card} aria-label={title}>
      <div className={styles.head}>
        <h3>{title}</h3>
        <span className={cx(styles.use, usage.is === 'yes' && styles.inUse)}>{uses[usage.is]}</span>
      </div>
      <div className={styles.drawing}>
        <Drawing id={id} title={title} />
      </div>
      <p>{text}</p>
      <p className={styles.why}>{usage.why}</p>
      <h4>Published</h4>
      {published.length === 0 ? (
        <p className={styles.why}>No published figure here.</p>
      ) : (
        <ul className={styles.published}>
          {published.map(({ figure, source, url }) => (
            <li key={figure}>
              {figure}{' '}
              <small>
                (
                {url ? (
                  <a href={url} target="_blank" rel="noopener noreferrer">
                    {source}
                  </a>
                ) : (
                  source
                )}
                )
              </small>
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

const useStyles = stylesOf((theme) => ({
  card: {
    minWidth: 0,
    padding: theme.spacing(2),
    border: `1px solid ${theme.colors.border.weak}`,
    borderRadius: theme.shape.radius.default,
    fontSize: 'clamp(14px, 0.95vw, 18px)',
    '& h3': { ...theme.typography.h4, margin: 0 },
    '& h4': { ...theme.typography.bodySmall, margin: 0, color: theme.colors.text.secondary },
    '& p': { margin: theme.spacing(1, 0), textWrap: 'pretty' },
  },
  head: { ...LINE, justifyContent: 'space-between', gap: theme.spacing(1) },
  use: {
    padding: theme.spacing(0.25, 1),
    border: `1px solid ${theme.colors.border.strong}`,
    borderRadius: theme.shape.radius.default,
    fontSize: theme.typography.bodySmall.fontSize,
  },
  inUse: { borderColor: theme.colors.info.border, borderWidth: 2, background: theme.colors.info.transparent },
  drawing: { maxWidth: 520, margin: theme.spacing(2, 'auto') },
  why: { color: theme.colors.text.secondary },
  published: {
    margin: 0,
    paddingLeft: theme.spacing(2.5),
    '& small': { color: theme.colors.text.secondary, fontSize: theme.typography.bodySmall.fontSize },
    '& a': { color: theme.colors.text.link, textDecoration: 'underline' },
  },
}));
