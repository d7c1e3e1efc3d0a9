// Jest setup provided by Grafana scaffolding
import './.config/jest-setup';

import { notifyManager } from '@tanstack/react-query';
import { configure } from '@testing-library/react';

// Whether an element can be seen is costly to know in jsdom, and nothing here is hidden by style alone.
configure({ defaultHidden: true, asyncUtilTimeout: 10_000 });

// Answers show at once, not a timer later, which a test with a clock of its own would have to run.
notifyManager.setScheduler(queueMicrotask);
