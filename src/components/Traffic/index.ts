export { arrivals, fieldOf, shapeField } from './model';
export { Traffic } from './Traffic';
