export { agreementWords } from './model';
export { OtherRouters } from './OtherRouters';
