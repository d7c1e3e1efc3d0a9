export { arrivals, fieldOf, shapeField, shapeOptions } from './model';
export { Traffic } from './Traffic';
