export type {
  ChangePage,
  ChangeStream,
  Feed,
  FeedStats,
  LogEntry,
  PageRequest,
  StreamItem,
  StreamRequest,
  TimelineRequest,
} from './stream-types.js';
export { StreamEnded } from './stream-types.js';
