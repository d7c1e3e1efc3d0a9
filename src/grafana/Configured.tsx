import type { PropsWithChildren } from 'react';

import { locationUtil } from '@grafana/data';
import { EmptyState, LinkButton } from '@grafana/ui';

import { useMe } from '../client';
import { PLUGIN_ID } from '../client/grafana';

/** Renders its children once the load generator's address is configured; before that, the steps to configure it. */
export function Configured({ children }: PropsWithChildren) {
  const me = useMe();
  return me?.configured === false ? <FirstRun mayConfigure={me.canConfigure} /> : <>{children}</>;
}

/** Links to the configuration for users who may change it, and names the administrator as the contact for others. */
export function FirstRun({ mayConfigure }: { mayConfigure: boolean }) {
  return (
    <EmptyState
      variant="call-to-action"
      hideImage
      role="status"
      message="No load generator configured"
      button={
        mayConfigure ? (
          <LinkButton icon="cog" href={locationUtil.assureBaseUrl(`/plugins/${PLUGIN_ID}?page=configuration`)}>
            Open the configuration page
          </LinkButton>
        ) : undefined
      }
    >
      {mayConfigure
        ? 'Enter the Load generator URL on the app’s configuration page, and save.'
        : 'Ask a Grafana administrator to enter the Load generator URL on the app’s configuration page.'}
    </EmptyState>
  );
}
