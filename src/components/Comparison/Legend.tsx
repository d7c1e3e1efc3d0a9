import React from 'react';

import { tagMeanings, type Model } from './model';
import { Notes, SLONotes } from './Notes';

interface LegendProps {
  model: Model;
  settling: boolean;
}

/** Says what the columns are, and what the tags in use mean. */
export function Legend({ model, settling }: LegendProps) {
  return (
    <Notes label="Legend">
      {settling && (
        <li>
          <b>Settling</b>: the live figures are those of this step so far; they are compared once 60 s of it exist.
        </li>
      )}
      {model.sources.map(({ short, text }) => (
        <li key={short}>
          <b>{short}</b>: {text}
        </li>
      ))}
      {model.sources.length > 0 && !settling && <li>Per cent: live against that value; an interval of 95 % decides</li>}
      {model.tags.map((tag) => (
        <li key={tag}>
          <i>{tag}</i>: {tagMeanings[tag]}
        </li>
      ))}
      <SLONotes />
    </Notes>
  );
}
