export { useConfirm, type Confirm } from './useConfirm';
