import { useEffect } from 'react';
import { useLocation } from 'react-router-dom';

import { Icon } from '@grafana/ui';

import { loadDrawn } from '../components/Chart';
import { Troubles } from '../components/Status';
import { hasTwin } from '../pages/lane';
import { pages } from '../pages/registry';
import { Header, Navigation, PageRoutes, useBooth, useCurrentPage, useStageKey } from '../pages/Shell';
import { vendors } from '../vendor';
import { COLUMN, stylesOf } from '../lib/styles';
import { Tools } from './Tools';
import type { Access } from './useSession';

/** The whole page: the header above every page of the app, and the open page. */
export function Layout({ access }: { access: Access }) {
  const styles = useStyles();
  const booth = useBooth();
  useTitle(booth.title);
  useTop();
  useAll();
  useStageKey();
  if (useCurrentPage()?.bare) {
    return (
      <main className={styles.bare}>
        <PageRoutes />
      </main>
    );
  }
  return (
    <div className={styles.page}>
      <a href="#content" className={styles.skip}>
        Skip to content
      </a>
      <Header booth={booth} tools={<Tools access={access} />} />
      <Navigation twin={hasTwin(booth.live)} />
      {outageIcons}
      <div className={styles.troubles}>
        <Troubles live={booth.live} />
      </div>
      <main id="content" tabIndex={-1} className={styles.main}>
        <PageRoutes />
      </main>
    </div>
  );
}

/** The icons of messages about a lost server. They are fetched early, because the server cannot deliver them later. */
const outageIcons = (
  <div hidden>
    <Icon name="exclamation-circle" size="xl" />
    <Icon name="exclamation-triangle" size="xl" />
    <Icon name="sync" size="xl" />
  </div>
);

/** The browser's title begins with the page, which distinguishes tabs. */
function useTitle(title: string) {
  const page = useCurrentPage()?.title;
  useEffect(() => {
    document.title = page ? `${page} · ${title}` : title;
  }, [page, title]);
}

/** Scrolls every new page to its top. */
function useTop() {
  const { pathname } = useLocation();
  useEffect(() => {
    document.documentElement.scrollTop = 0;
  }, [pathname]);
}

/** The delay after which the other pages are fetched, in milliseconds after the first page. */
export const FETCH_AFTER = 3000;

/** Fetches the code of the other pages, so that they open at once, and even while the load generator is unreachable. */
function useAll() {
  useEffect(() => {
    const loads = [...pages.map(({ load }) => load), ...Object.values(vendors), loadDrawn];
    const timer = setTimeout(() => loads.forEach((load) => load().catch(() => undefined)), FETCH_AFTER);
    return () => clearTimeout(timer);
  }, []);
}

const useStyles = stylesOf((theme) => ({
  page: {
    ...COLUMN,
    gap: theme.spacing(1),
    minHeight: '100vh',
    padding: theme.spacing(0, 2, 2),
    background: theme.colors.background.canvas,
  },
  bare: { minHeight: '100dvh', background: theme.colors.background.canvas },
  troubles: { display: 'grid', gap: theme.spacing(1), '&:empty': { display: 'none' } },
  main: { minWidth: 0, paddingTop: theme.spacing(1), '&:focus': { outline: 'none' } },
  skip: {
    position: 'absolute',
    top: theme.spacing(-10),
    zIndex: theme.zIndex.tooltip,
    padding: theme.spacing(1),
    background: theme.colors.background.elevated,
    '&:focus': { top: theme.spacing(1) },
  },
}));
