import React from 'react';

import { ClientProvider } from '../client';
import { grafanaClient } from '../client/grafana';
import { Dashboard } from './Dashboard';

/** The app inside Grafana. */
export default function App() {
  return (
    <ClientProvider client={grafanaClient}>
      <Dashboard />
    </ClientProvider>
  );
}
