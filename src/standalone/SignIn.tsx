import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { TokenForm } from './TokenForm';
import type { Access } from './useSession';

/** The page without a token, where nothing is public. */
export function SignIn({ access: { signIn } }: { access: Access }) {
  const styles = useStyles2(getStyles);
  return (
    <main className={styles.page}>
      <h1>KV Booth</h1>
      <p>This load generator requires a token.</p>
      <TokenForm signIn={signIn} />
    </main>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  page: css({ maxWidth: 480, margin: '0 auto', padding: theme.spacing(8, 2) }),
});
