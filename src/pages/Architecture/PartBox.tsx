import { memo, type ReactNode } from 'react';

import { ButtonBox, Words, type Rect } from '../../components/Diagram';
import { shorten } from '../../lib/workers';
import { presenceWord, type Part } from './parts';

/** The selection of a part, as a drawing needs it. */
export interface Choosing {
  selected: string;
  onSelect(id: string): void;
}

interface PartBoxProps extends Choosing {
  part: Part;
  rect: Rect;
  /** How many of its numbers the box shows. */
  figures: number;
  accent?: boolean;
  /** Numbers beside the title instead of below it. */
  inline?: boolean;
  /** Numbers in small letters. */
  small?: boolean;
  /** The length at which its title is cut, in letters. */
  letters?: number;
  children?: ReactNode;
}

/** Rendered again only when its texts change. */
export const PartBox = memo(
  function PartBox(props: PartBoxProps) {
    const { part, rect, figures, accent, inline, small, letters = 40, selected, onSelect, children } = props;
    const shown = part.figures.slice(0, figures);
    const word = presenceWord(part.presence);
    const missing = part.presence.is !== 'here';
    return (
      <ButtonBox
        rect={rect}
        title={shorten(part.title, Math.floor(letters))}
        tone={missing ? 'absent' : accent ? 'accent' : 'plain'}
        selected={selected === part.id}
        onSelect={() => onSelect(part.id)}
      >
        {inline ? (
          <Words x={rect.width - 12} y={27} anchor="end">
            {word ?? shown.map((f) => `${f.value} ${f.name}`).join(' · ')}
          </Words>
        ) : word ? (
          <Words x={12} y={Math.min(50, rect.height - 12)}>
            {word}
          </Words>
        ) : small ? (
          shown.map((f) => <Words key={f.name} x={12} y={48}>{`${f.value} ${f.name}`}</Words>)
        ) : (
          shown.map((f, i) => <Big key={f.name} y={62 + i * 44} value={f.value} name={f.name} />)
        )}
        {children}
      </ButtonBox>
    );
  },
  (a, b) =>
    (a.selected === a.part.id) === (b.selected === b.part.id) &&
    a.onSelect === b.onSelect &&
    JSON.stringify([a.part, a.rect]) === JSON.stringify([b.part, b.rect])
);

function Big({ y, value, name }: { y: number; value: string; name: string }) {
  return (
    <>
      <Words x={12} y={y} size="value">
        {value}
      </Words>
      <Words x={12} y={y + 17}>
        {name}
      </Words>
    </>
  );
}
