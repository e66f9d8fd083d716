import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { psTable } from '../../../src/adapters/process/ps-table.js';
import { describeAdapterContract, type AdapterSubject } from '../../support/adapter-contract.js';
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

const subject: AdapterSubject = {
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
};

describeAdapterContract('process', subject);
describeAdapterContract('process, found by ps', {
  ...subject,
  adapter: () => here().adapter({ table: psTable }),
});
