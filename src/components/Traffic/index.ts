export { arrivals, fieldOf, presets, shapeField } from './model';
export { Traffic } from './Traffic';
