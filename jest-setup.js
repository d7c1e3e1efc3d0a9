// Tests of logic run in the environment of Node, which has no document to set up.
if (typeof document !== 'undefined') {
  require('./.config/jest-setup'); // provided by Grafana scaffolding
  const { notifyManager } = require('@tanstack/react-query');
  const { configure } = require('@testing-library/react');

  // Whether an element can be seen is costly to know in jsdom, and nothing here is hidden by style alone.
  configure({ defaultHidden: true, asyncUtilTimeout: 60_000 });

  // Nothing has a size in jsdom: a chart, which needs one, has its words and its keys alone.
  const observer = class {
    observe = () => undefined;
    unobserve = () => undefined;
    disconnect = () => undefined;
  };
  Object.assign(global, { ResizeObserver: observer, IntersectionObserver: observer });

  // To match Emotion's style sheets takes jsdom most of the time of a test.
  window.getComputedStyle = ({ style }) => style;

  // Answers show at once, not a timer later, which a test with a clock of its own would have to run.
  notifyManager.setScheduler(queueMicrotask);
}
