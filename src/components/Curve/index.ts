export { Curve, CurveSign, type CurveLine, type CurveTone, type Mark, type Point } from './Curve';
export { scaleFrom, type Scale, type Tick } from './scale';
