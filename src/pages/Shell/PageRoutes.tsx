import React, { lazy, Suspense, type ComponentType, type LazyExoticComponent } from 'react';
import { css } from '@emotion/css';
import { Link, Route, Routes } from 'react-router-dom';

import type { GrafanaTheme2 } from '@grafana/data';
import { Alert, LoadingPlaceholder, useStyles2 } from '@grafana/ui';

import { usePagePath } from '../navigation';
import { pages, type Page } from '../registry';
import { PageErrorBoundary } from './PageErrorBoundary';

/** What is loaded once is there at once when it is opened again. */
const contents = pages.map((page) => ({ page, Content: lazy(page.load) }));

/** The page that the address names, below the host's own part of it. */
export function PageRoutes() {
  return (
    <Routes>
      {contents.map(({ page, Content }) => (
        <Route key={page.id} path={page.path} element={<Opened key={page.id} page={page} Content={Content} />} />
      ))}
      <Route path="*" element={<NoSuchPage />} />
    </Routes>
  );
}

interface OpenedProps {
  page: Page;
  Content: LazyExoticComponent<ComponentType>;
}

function Opened({ page: { title }, Content }: OpenedProps) {
  return (
    <PageErrorBoundary title={title}>
      <Suspense fallback={<LoadingPlaceholder text={`Opening ${title.toLowerCase()}`} />}>
        <Content />
      </Suspense>
    </PageErrorBoundary>
  );
}

function NoSuchPage() {
  const styles = useStyles2(getStyles);
  const pagePath = usePagePath();
  return (
    <Alert severity="info" title="There is no such page">
      <Link to={pagePath('')} className={styles.link}>{`Go to ${pages[0].title.toLowerCase()}`}</Link>
    </Alert>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  link: css({ color: theme.colors.text.link, textDecoration: 'underline' }),
});
