/** Rows put straight into the store, for tests of what reads them. */
import { newId } from '../../src/kernel/ids.js';
import type { Database } from '../../src/store/database.js';
import type { DeploymentRow, ReleaseRow, RuntimeRow } from '../../src/store/rows.js';
import { insertRow, updateRow, type Settable } from '../../src/store/versioned.js';

const stamp = { actor: 'test', reason: 'Seeded', message: null, traceId: null };
let made = 0;

export function seedRuntime(database: Database, values: Settable<'runtime'> = {}): Promise<RuntimeRow> {
  made += 1;
  const row = { namespace: 'default', name: `runtime-${made}`, type: 'external', ...values };
  return insertRow(database.writer, 'runtime', newId('RUNTIME'), row, stamp);
}

export function seedRelease(database: Database, values: Settable<'release'> = {}): Promise<ReleaseRow> {
  made += 1;
  const resources = [
    { name: 'web', serviceType: 'process', spec: {}, requires: [], lifecycle: 'LIVE', reschedule: 'NEVER' },
  ];
  const row = { namespace: 'default', app: 'shop', label: `v${made}`, resources, ...values };
  return insertRow(database.writer, 'release', newId('RELEASE'), row, stamp);
}

export async function seedDeployment(
  database: Database,
  values: Settable<'deployment'> & { readonly runtimeId?: string } = {},
): Promise<DeploymentRow> {
  made += 1;
  const runtimeId =
    values.runtimeId ??
    (await seedRuntime(database, values.namespace ? { namespace: values.namespace } : {})).id;
  const row = { namespace: 'default', name: `deployment-${made}`, app: 'shop', ...values, runtimeId };
  return insertRow(database.writer, 'deployment', newId('DEPLOYMENT'), row, stamp);
}

/** Moves a row on by one version. */
export async function advanceDeployment(
  database: Database,
  row: DeploymentRow,
  values: Settable<'deployment'>,
): Promise<DeploymentRow> {
  const moved = await updateRow(database.writer, 'deployment', row.id, row.version, values, stamp);
  if (!moved) throw new Error(`${row.id} is not at version ${row.version}`);
  return moved;
}
