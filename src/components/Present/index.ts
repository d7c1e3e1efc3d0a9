export { CopyLink } from './CopyLink';
export { FullScreenButton } from './FullScreenButton';
export { type TimeSpan } from './link';
