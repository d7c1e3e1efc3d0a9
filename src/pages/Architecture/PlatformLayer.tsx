import { Fragment } from 'react';

import { ButtonBox, Diagram, Words, type Rect } from '../../components/Diagram';
import { presenceWord, type Part, type Presence } from './parts';
import { placeGroups, type PlatformGroupParts } from './platform';
import type { Choosing } from './PartBox';

interface PlatformLayerProps extends Choosing {
  groups: PlatformGroupParts[];
  /** A remark that holds for most of it, shown above the drawing. */
  rest: Presence;
}

/** The platform below the serving cluster. */
export function PlatformLayer({ groups, rest, ...choosing }: PlatformLayerProps) {
  const placed = placeGroups(groups.map((g) => g.items.length));
  return (
    <Diagram label="The platform" width={placed.width} height={placed.height} minWidth={800}>
      {groups.map(({ group, items }, i) => (
        <Fragment key={group.id}>
          <PlatformBox part={group} rect={placed.groups[i].rect} rest={rest} group {...choosing} />
          {items.map((item, j) => (
            <PlatformBox key={item.id} part={item} rect={placed.groups[i].items[j]} rest={rest} {...choosing} />
          ))}
        </Fragment>
      ))}
    </Diagram>
  );
}

interface PlatformBoxProps extends Choosing {
  part: Part;
  rect: Rect;
  rest: Presence;
  group?: boolean;
}

function PlatformBox({ part, rect, rest, group, selected, onSelect }: PlatformBoxProps) {
  const word = presenceWord(part.presence);
  return (
    <ButtonBox
      rect={rect}
      title={part.title}
      label={word && `${part.title} ${word}`}
      tone={['here', 'configured'].includes(part.presence.is) ? 'plain' : 'absent'}
      selected={selected === part.id}
      onSelect={() => onSelect(part.id)}
    >
      {/* A group's items are below its title, so the title's remark is beside it. */}
      {word && part.presence.is !== rest.is && (
        <Words x={group ? rect.width - 12 : 12} y={group ? 26 : 47} anchor={group ? 'end' : 'start'}>
          {word}
        </Words>
      )}
    </ButtonBox>
  );
}
