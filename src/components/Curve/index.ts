export {
  Curve,
  CurveSign,
  type CurveBand,
  type CurveLine,
  type CurveLook,
  type CurveTone,
  type Mark,
  type Point,
} from './Curve';
export { CurveFigure, Curves, ROOM, type LegendItem } from './Curves';
export { levels, scaleFrom, type Scale, type Tick } from './scale';
