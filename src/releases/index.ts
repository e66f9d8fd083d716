export { releaseCommands, type ReleaseCommands } from './commands.js';
export { releaseReadReferred, type ReleaseRef } from './store.js';
