import React from 'react';

import type { Reference } from './content/types';

interface ReferencesProps {
  title: string;
  of: Reference[];
  className: string;
}

/** Where something was published, or where to read on. */
export function References({ title, of, className }: ReferencesProps) {
  return (
    <p className={className}>
      {title}:{' '}
      {of.map((one, i) => (
        <React.Fragment key={one.title}>
          {i > 0 && ' · '}
          <a href={one.url} target="_blank" rel="noopener noreferrer">
            {one.title}
          </a>
        </React.Fragment>
      ))}
    </p>
  );
}
