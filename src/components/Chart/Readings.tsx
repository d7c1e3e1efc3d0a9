import { stylesOf } from '../../lib/styles';
import { LineSign } from './LineSign';
import { placeText, readAt, type View } from './view';

/** The values beside the crosshair: a position, and the value of each line there. */
export function Readings({ view, index }: { view: View; index: number }) {
  const styles = useStyles();
  const at = view.data[0][index];
  return (
    <table className={styles.readings}>
      <caption>{placeText(view.x, at)}</caption>
      <tbody>
        {readAt(view, index).map(({ line, text }) => (
          <tr key={line.key}>
            <th scope="row">
              <LineSign tone={line.tone} look={line.look} color={line.color} /> {line.name}
            </th>
            <td>{text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const useStyles = stylesOf((theme) => ({
  readings: {
    margin: theme.spacing(1),
    fontSize: theme.typography.bodySmall.fontSize,
    fontVariantNumeric: 'tabular-nums',
    whiteSpace: 'nowrap',
    '& caption': { captionSide: 'top', padding: 0, textAlign: 'left', color: theme.colors.text.secondary },
    '& th': { fontWeight: theme.typography.fontWeightRegular, textAlign: 'left', paddingRight: theme.spacing(2) },
    '& td': { fontWeight: theme.typography.fontWeightMedium, textAlign: 'right' },
  },
}));
