export { CopyLink, type TimeSpan } from './CopyLink';
export { FullScreenButton } from './FullScreenButton';
