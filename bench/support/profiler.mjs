/** Imported before the server by `--profile`: writes a CPU profile when the process ends, for Chrome's developer tools. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../results/profiles/', import.meta.url));

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.setSamplingInterval', { interval: 500 });
session.post('Profiler.start');
process.once('exit', () => {
  // In a session on its own thread the answer comes during the call.
  session.post('Profiler.stop', (error, result) => {
    if (error) throw error;
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(`${FOLDER}server-${process.pid}.cpuprofile`, JSON.stringify(result.profile));
  });
});
