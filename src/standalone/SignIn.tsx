import { stylesOf } from '../lib/styles';
import { TokenForm } from './TokenForm';
import type { Access } from './useSession';

/** The page without a token, where nothing is public. */
export function SignIn({ access: { signIn } }: { access: Access }) {
  const styles = useStyles();
  return (
    <main className={styles.page}>
      <h1>KV Booth</h1>
      <p>This load generator requires a token.</p>
      <TokenForm signIn={signIn} />
    </main>
  );
}

const useStyles = stylesOf((theme) => ({
  page: { maxWidth: 480, margin: '0 auto', padding: theme.spacing(8, 2) },
}));
