export { agreementWords } from './model';
export { OtherRouters, ShadowView } from './OtherRouters';
