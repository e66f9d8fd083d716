/** Imported before a server whose memory is measured: on SIGUSR2 it drops what is garbage, so that the rest can be read. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

process.on('SIGUSR2', () => {
  collect();
  collect();
});
