// Jest setup provided by Grafana scaffolding
import './.config/jest-setup';

import { configure } from '@testing-library/react';

// Whether an element can be seen is costly to know in jsdom, and nothing here is hidden by style alone.
configure({ defaultHidden: true, asyncUtilTimeout: 10_000 });
