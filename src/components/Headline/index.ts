export { HeadlineView, LaneHeadline } from './Headline';
