/** Five tenants whose every name and text carries a marker of its own, and the scan that finds what is somebody else's. */
import { newId } from '../../src/kernel/ids.js';
import type { Database } from '../../src/store/database.js';
import { seedDeployment, seedRelease, seedRuntime } from './seed.js';

export const TENANTS = 5;
/** Long enough to stand in no id and no cursor by chance. */
const MARKER = /tenantzq(\d)/g;
export const marked = (tenant: number): string => `tenantzq${tenant % TENANTS}`;

/** What an operation can name: objects of one tenant, or ones that never were. */
export interface Refs {
  readonly namespace: string;
  readonly runtime: string;
  readonly release: string;
  readonly deployment: string;
  readonly runtimeName: string;
  readonly releaseLabel: string;
  readonly deploymentName: string;
}
type Ref = Pick<Refs, 'runtime' | 'release' | 'deployment'>;

export interface Tenants {
  /** Which tenant an id belongs to. */
  readonly owners: ReadonlyMap<string, number>;
  refs(tenant: number, pick: number): Refs;
  /** Moves a deployment of the tenant to another phase, behind the server. Gives its id and version. */
  move(tenant: number, pick: number): Promise<{ readonly id: string; readonly version: number }>;
  /** Learns which objects were made since. */
  refresh(): Promise<void>;
}

export function absentRefs(): Refs {
  return {
    namespace: 'nowhere',
    runtime: newId('RUNTIME'),
    release: newId('RELEASE'),
    deployment: newId('DEPLOYMENT'),
    runtimeName: 'no-runtime',
    releaseLabel: 'no-release',
    deploymentName: 'no-deployment',
  };
}

const OBJECTS = 3;
const EVERY_ID = ['runtime', 'release', 'deployment', 'rollout']
  .map((table) => `SELECT id, namespace FROM ${table}`)
  .join(' UNION ALL ');
const MOVE = `UPDATE deployment SET version = version + 1, change_token = gen_random_uuid(), change_reason = 'Moved', change_message = $2,
  phase = CASE phase WHEN 'RUNNING' THEN 'UPDATING' ELSE 'RUNNING' END::"DeploymentPhase" WHERE id = $1 RETURNING id, version`;

export async function seedTenants(database: Database): Promise<Tenants> {
  const seeded: Ref[][] = Array.from({ length: TENANTS }, () => []);
  for (let at = 0; at < OBJECTS; at += 1) {
    const made: Omit<Ref, 'deployment'>[] = [];
    for (let tenant = 0; tenant < TENANTS; tenant += 1) {
      const namespace = marked(tenant);
      const labels = { team: namespace };
      const runtime = await seedRuntime(database, { namespace, name: `${namespace}-runtime-${at}`, labels });
      const release = await seedRelease(database, {
        namespace,
        app: namespace,
        label: `${namespace}-v${at}`,
      });
      made.push({ runtime: runtime.id, release: release.id });
    }
    for (let tenant = 0; tenant < TENANTS; tenant += 1) {
      // Every third stands on the runtime and the release of the next tenant.
      const on = made[(tenant + (at === 0 ? 1 : 0)) % TENANTS];
      const namespace = marked(tenant);
      const deployment = await seedDeployment(database, {
        namespace,
        name: `${namespace}-deployment-${at}`,
        app: namespace,
        labels: { team: namespace },
        runtimeId: on?.runtime ?? '',
        targetReleaseId: on?.release ?? '',
      });
      seeded[tenant]?.push({ ...(made[tenant] ?? { runtime: '', release: '' }), deployment: deployment.id });
    }
  }
  const owners = new Map<string, number>();
  const of = (tenant: number, pick: number): Ref => {
    const ref = seeded[tenant % TENANTS]?.[pick % OBJECTS];
    if (!ref) throw new Error('no such tenant');
    return ref;
  };
  const tenants: Tenants = {
    owners,
    refs: (tenant, pick) => ({
      ...of(tenant, pick),
      namespace: marked(tenant),
      runtimeName: `${marked(tenant)}-runtime-${pick % OBJECTS}`,
      releaseLabel: `${marked(tenant)}-v${pick % OBJECTS}`,
      deploymentName: `${marked(tenant)}-deployment-${pick % OBJECTS}`,
    }),
    async move(tenant, pick) {
      const { rows } = await database.writer.query<{ id: string; version: number }>({
        text: MOVE,
        values: [of(tenant, pick).deployment, `said by ${marked(tenant)}`],
      });
      const [moved] = rows;
      if (!moved) throw new Error('the deployment is gone');
      return moved;
    },
    async refresh() {
      const { rows } = await database.pool.query<{ id: string; namespace: string }>(EVERY_ID);
      for (const { id, namespace } of rows) owners.set(id, Number(namespace.at(-1)));
    },
  };
  await tenants.refresh();
  return tenants;
}

/**
 * What of `text` belongs to tenants other than `allowed`: ids and markers, also inside cursors. The `message` of a
 * failure or error may repeat what was asked, and nothing else.
 */
export function findForeign(
  { owners }: Pick<Tenants, 'owners'>,
  allowed: ReadonlySet<number>,
  asked: string,
  text: string,
): string[] {
  const spoken = [...text.matchAll(/"message":"(?:[^"\\]|\\.)*"/g)].map(([message]) => message);
  const facts = text.replaceAll(/"message":"(?:[^"\\]|\\.)*"/g, '');
  const cursors = [...facts.matchAll(/"([\w-]{24,})"/g)].map(([, packed = '']) =>
    Buffer.from(packed, 'base64url').toString(),
  );
  return [
    ...[facts, ...cursors].flatMap((part) => mentions(owners, allowed, part)),
    ...spoken
      .flatMap((part) => mentions(owners, allowed, part))
      .filter((mention) => !asked.includes(mention)),
  ];
}

function mentions(owners: ReadonlyMap<string, number>, allowed: ReadonlySet<number>, text: string): string[] {
  const markers = [...text.matchAll(MARKER)].filter(([, tenant]) => !allowed.has(Number(tenant)));
  const ids = [...text.matchAll(/\b(?:rt|rel|dep)_[0-9a-z]{26}\b/g)].filter(([id]) => {
    const owner = owners.get(id);
    return owner === undefined || !allowed.has(owner);
  });
  return [...markers, ...ids].map(([mention]) => mention);
}
