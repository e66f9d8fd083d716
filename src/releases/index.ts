export { releaseCommands, type ReleaseCommands } from './commands.js';
export { releaseFilterSchema } from './filter.js';
export type { ReleaseResource, ResourceLifecycle } from './model.js';
export { releasesWanted } from './reads.js';
export { releaseReadReferred, type ReleaseRef } from './store.js';
