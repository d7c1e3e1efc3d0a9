import { lazy, memo, Suspense, useCallback, useState, type ComponentType, type LazyExoticComponent } from 'react';
import { Link, Route, Routes } from 'react-router-dom';

import { Alert } from '@grafana/ui';

import { Loading } from '../../components/Loading';
import { stylesOf } from '../../lib/styles';
import { usePagePath } from '../navigation';
import { pages, type Page } from '../registry';
import { PageErrorBoundary } from './PageErrorBoundary';

/** Loaded pages open again without a delay. */
const contents = new Map<string, LazyExoticComponent<ComponentType>>();

function contentOf({ id, load }: Page) {
  let content = contents.get(id);
  if (!content) {
    content = lazy(() =>
      load().catch((error: unknown) => {
        contents.delete(id); // a failed load is not kept
        throw error;
      })
    );
    contents.set(id, content);
  }
  return content;
}

/** The page that the address names, below the host's own part of it. */
export const PageRoutes = memo(function PageRoutes() {
  return (
    <Routes>
      {pages.map((page) => (
        <Route key={page.id} path={page.path} element={<Opened key={page.id} page={page} />} />
      ))}
      <Route path="*" element={<NoSuchPage />} />
    </Routes>
  );
});

function Opened({ page }: { page: Page }) {
  const { title } = page;
  const [{ attempt, Content }, open] = useState(() => ({ attempt: 1, Content: contentOf(page) }));
  const retry = useCallback(() => open((last) => ({ attempt: last.attempt + 1, Content: contentOf(page) })), [page]);
  return (
    <PageErrorBoundary key={attempt} title={title} retry={retry}>
      <Suspense fallback={<Loading text={`Opening ${title.toLowerCase()}`} bars={8} />}>
        <Content />
      </Suspense>
    </PageErrorBoundary>
  );
}

function NoSuchPage() {
  const styles = useStyles();
  const pagePath = usePagePath();
  return (
    <Alert severity="info" title="Page not found">
      <Link to={pagePath('')} className={styles.link}>{`Go to ${pages[0].title.toLowerCase()}`}</Link>
    </Alert>
  );
}

const useStyles = stylesOf((theme) => ({
  link: { color: theme.colors.text.link, textDecoration: 'underline' },
}));
