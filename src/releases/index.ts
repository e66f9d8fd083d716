export { releaseCommands, type ReleaseCommands } from './commands.js';
export { releaseFilterSchema } from './filter.js';
export { releaseWhere } from './reads.js';
export { releaseReadReferred, type ReleaseRef } from './store.js';
