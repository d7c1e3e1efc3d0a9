import type { ComponentType } from 'react';

import type { IconName } from '@grafana/ui';

/** A page of the app. */
export interface Page {
  id: string;
  /** Its address below the base, as a pattern of react-router: "conversations/:id". */
  path: string;
  title: string;
  icon: IconName;
  /** Whether it is opened from another page only, and not from the navigation. */
  nested?: boolean;
  /** Whether the navigation has it only where a second lane runs the same conversations. */
  twin?: boolean;
  /** Whether it fills the screen, without the header and the navigation. */
  bare?: boolean;
  /** Its content, which is loaded when it is first opened. */
  load(): Promise<{ default: ComponentType }>;
}

/** All pages, in the order of the navigation. */
export const pages: Page[] = [
  { id: 'dashboard', path: '', title: 'Dashboard', icon: 'apps', load: () => import('./Dashboard') },
  {
    id: 'side-by-side',
    path: 'side-by-side',
    title: 'Side by side',
    icon: 'columns',
    twin: true,
    load: () => import('./SideBySide'),
  },
  {
    id: 'conversations',
    path: 'conversations',
    title: 'Conversations',
    icon: 'comments-alt',
    load: () => import('./Conversations'),
  },
  {
    id: 'conversation',
    path: 'conversations/:id',
    title: 'Conversation',
    icon: 'comments-alt',
    nested: true,
    load: () => import('./Conversations/Conversation'),
  },
  {
    id: 'architecture',
    path: 'architecture',
    title: 'Architecture',
    icon: 'sitemap',
    load: () => import('./Architecture'),
  },
  {
    id: 'kv-routing',
    path: 'kv-routing',
    title: 'KV routing',
    icon: 'code-branch',
    load: () => import('./KvRouting'),
  },
  {
    id: 'dynamo-features',
    path: 'dynamo-features',
    title: 'Dynamo features',
    icon: 'rocket',
    load: () => import('./DynamoFeatures'),
  },
  { id: 'what-if', path: 'what-if', title: 'What if', icon: 'calculator-alt', load: () => import('./WhatIf') },
  { id: 'benchmarks', path: 'benchmarks', title: 'Benchmarks', icon: 'graph-bar', load: () => import('./Benchmarks') },
  { id: 'history', path: 'history', title: 'History', icon: 'chart-line', load: () => import('./History') },
  { id: 'events', path: 'events', title: 'Events', icon: 'history', load: () => import('./Events') },
  { id: 'guide', path: 'guide', title: 'Presenter’s guide', icon: 'book-open', load: () => import('./Guide') },
  {
    id: 'stage',
    path: 'stage',
    title: 'Stage view',
    icon: 'presentation-play',
    bare: true,
    load: () => import('./Stage'),
  },
];
