export { RadioCards } from './RadioCards';
