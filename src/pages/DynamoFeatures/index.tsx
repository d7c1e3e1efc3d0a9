import { useLive } from '../../client';
import { useTarget } from '../../components/Diagram';
import { Section } from '../../components/Section';
import { sectionGrid, stylesOf, WALL } from '../../lib/styles';
import { LANE } from '../lane';
import { Card } from './Card';
import { FEATURES, usage } from './features';
import { Phases } from './Phases';

/** The page on Dynamo's features, and which of them are in use. */
export default function DynamoFeatures() {
  const styles = useStyles();
  const live = useLive(LANE);
  const { kind } = useTarget(live, LANE);
  return (
    <div className={styles.page}>
      <Section
        title="What Dynamo offers"
        info={
          'What NVIDIA Dynamo offers, and whether this cluster uses it. Figures are published ones ' +
          'with their source, not measured here; what is in use comes from the live state.'
        }
      >
        <div className={styles.cards}>
          {FEATURES.map((feature) => (
            <Card key={feature.id} feature={feature} usage={usage(feature.id, live.lane, kind)} />
          ))}
        </div>
      </Section>
      <Phases live={live} />
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  // The table of phases is too wide for a third of a screen.
  page: { ...sectionGrid(theme), [WALL]: { gridTemplateColumns: 'repeat(2, minmax(0, 1fr))' } },
  cards: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fill, minmax(min(100%, max(360px, 30%)), 1fr))',
    gap: theme.spacing(2),
  },
}));
