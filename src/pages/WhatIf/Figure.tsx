import type { Mode } from '../../client';
import { SLOValue } from '../../components/Comparison';
import { DASH, digits } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import type { FigureInfo, Source, Value } from './series';

/** A value in the unit of its figure, with the mark of its objective and its band; a dash without one. */
export function Figure({ figure: { format }, value }: { figure: FigureInfo; value: Value | undefined }) {
  const styles = useStyles();
  if (!value) {
    return <span className={styles.band}>{DASH}</span>;
  }
  return (
    <>
      <SLOValue level={value.slo}>
        <b>{digits(value.value, format)}</b>
      </SLOValue>
      {value.band && <small className={styles.band}> {bandText(value.band, format)}</small>}
    </>
  );
}

/** The least and the largest value; undefined with a single run. */
function bandText([low, high]: [number, number], format: FigureInfo['format']): string {
  return low === high ? '' : `${digits(low, format)}–${digits(high, format)}`;
}

/** Returns the value of a source and mode among those of a level. */
export function find(values: Value[], source: Source, mode: Mode): Value | undefined {
  return values.find((value) => value.source === source && value.mode === mode);
}

const useStyles = stylesOf((theme) => ({
  band: { color: theme.colors.text.secondary },
}));
