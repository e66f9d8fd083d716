import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { describeAdapterContract } from '../../support/adapter-contract.js';
import { adapterTarget, resource } from '../../support/adapter-driver.js';
import { binding, programHost, type ProgramHost } from '../../support/programs.js';

let host: ProgramHost | undefined;
const here = (): ProgramHost => (host ??= programHost());

const data = resource({ name: 'data', serviceType: 'directory', lifecycle: 'FROZEN' });
const first = resource({
  name: 'first',
  spec: { command: ['sleep', '300'], stopSeconds: 5 },
  requires: ['data'],
});
const second = resource({
  name: 'second',
  // Holds the secret, and prints it, as careless programs do.
  spec: { command: ['sh', '-c', 'echo "$KEY"; exec sleep 300'], cwd: binding('data', 'path') },
  requires: ['data'],
});

describeAdapterContract('process', {
  adapter: () => here().adapter(),
  target: () =>
    adapterTarget('process', [second, data, first], {
      env: [{ name: 'KEY', value: 'a secret value', secret: true }],
    }),
  otherConfig: { host: 'elsewhere' },
  async world({ deploymentId }) {
    const programs = (await here().processes())
      .filter(({ pid, session, mark }) => mark.deploymentId === deploymentId && pid === session)
      .map(({ pid, mark }) => `${mark.resource} ${mark.launch} ${pid}`);
    const folder = join(here().dataDir, 'process', 'directories', deploymentId);
    const directories = existsSync(folder) ? readdirSync(folder) : [];
    return [...programs.sort(), ...directories.map((name) => `directory ${name}`)];
  },
  size: 3,
  end: () => here().end(),
});
