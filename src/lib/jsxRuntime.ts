/**
 * The runtime of the automatic JSX transform. Grafana 12.2 offers plugins React without it, and React's own would make
 * elements that a host with another React refuses. It replaces `react/jsx-runtime` in the app's build.
 */
import { createElement, type ElementType, Fragment, type Key } from 'react';

/** Makes an element of the host's React. */
export const jsx = (type: ElementType, props: object, key?: Key) =>
  createElement(type, key === undefined ? props : { ...props, key });

/** Identical to jsx. Only React's warnings depend on whether there are several children. */
export const jsxs = jsx;

export { Fragment };
