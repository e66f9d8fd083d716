import { readTurns } from '../../src/kernel/read-turns.js';
import { silentLog } from '../../src/kernel/log.js';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { authorise } from '../../src/access/authorise.js';
import {
  deploymentFilterSchema,
  deploymentsWanted,
  type DeploymentFilter,
} from '../../src/deployments/index.js';
import { deploymentSnapshot } from '../../src/deployments/reads.js';
import { matches, type FieldFilter, type Filter, type LabelFilter } from '../../src/kernel/filter.js';
import { newId } from '../../src/kernel/ids.js';
import { releaseFilterSchema, releasesWanted } from '../../src/releases/index.js';
import { runtimeFilterSchema, runtimesWanted } from '../../src/runtimes/index.js';
import type { Database } from '../../src/store/database.js';
import { publicReads } from '../../src/store/public-reads.js';
import type { PublicReads, RowsRead, Wanted } from '../../src/store/public-types.js';
import { local, someone } from '../support/callers.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { openStore } from '../support/open-store.js';
import { seedDeployment, seedRelease, seedRuntime } from '../support/seed.js';

/** Few values that rows and filters share, so that they meet; with everything that LIKE and jsonb paths could misread. */
const NAMES = ['web', 'web-1', 'we', 'api', 'w_b', 'w%b', 'a\\b', 'Web'];
const KEYS = ['team', 'a.b', 'example.com/tier', 'a_b', '0'];
const VALUES = ['', 'x', 'y', 'X', '1', '1.5'];
const ENVIRONMENTS = [null, 'prod', 'prod-eu', 'stage'];
const NAMESPACES = ['default', 'other'];
const PHASES = ['PENDING', 'RUNNING', 'UPDATE_FAILED'] as const;
const ROWS = 60;

const pick = <T>(values: readonly T[]) => fc.constantFrom(...values);
const labels = fc.dictionary(pick(KEYS), pick(VALUES), { maxKeys: 3 });

const label: fc.Arbitrary<LabelFilter> = fc.oneof(
  fc.record({
    key: pick(KEYS),
    operator: fc.constantFrom('IN' as const, 'NOT_IN' as const),
    values: fc.array(pick(VALUES), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ key: pick(KEYS), operator: fc.constantFrom('EXISTS' as const, 'NOT_EXISTS' as const) }),
);

/** One or two operators of a field: more hardly ever hold together. */
function field(values: readonly string[], startsWith: boolean): fc.Arbitrary<FieldFilter> {
  const some = fc.array(pick(values), { maxLength: 3 });
  const one: fc.Arbitrary<FieldFilter> = fc.oneof(
    fc.record({ equals: pick(values) }),
    fc.record({ in: some }),
    fc.record({ notIn: some }),
    ...(startsWith
      ? [
          fc.record({
            startsWith: fc.oneof(pick(values), fc.constantFrom('', 'w', 'p', '%', '_', 'w_', '\\')),
          }),
        ]
      : []),
  );
  return fc.oneof(
    { weight: 4, arbitrary: one },
    fc.tuple(one, one).map(([a, b]) => ({ ...a, ...b })),
  );
}

function filterOf<F extends string>(
  fields: Record<F, fc.Arbitrary<FieldFilter>>,
  withLabels = true,
): fc.Arbitrary<Filter<F>> {
  const leaf: fc.Arbitrary<object> = fc.oneof(
    ...Object.entries<fc.Arbitrary<FieldFilter>>(fields).map(([name, one]) =>
      one.map((filter) => ({ [name]: filter })),
    ),
    ...(withLabels
      ? [
          {
            weight: 3,
            arbitrary: fc.array(label, { minLength: 1, maxLength: 2 }).map((labels) => ({ labels })),
          },
        ]
      : []),
  );
  const deeper = (inner: fc.Arbitrary<object>): fc.Arbitrary<object> => {
    const several = fc.array(inner, { minLength: 1, maxLength: 3 });
    return fc.oneof(
      leaf,
      fc.tuple(leaf, leaf).map(([a, b]) => ({ ...a, ...b })),
      several.map((and) => ({ and })),
      several.map((or) => ({ or })),
      inner.map((not) => ({ not })),
      fc.tuple(leaf, several, inner).map(([own, or, not]) => ({ ...own, or, not })),
    );
  };
  return deeper(deeper(leaf)); // built from exactly those fields
}

describe('filters mean the same in memory and in SQL', () => {
  let test: TestDatabase;
  let store: Database;
  let reads: PublicReads;
  const listed = async (wanted: Wanted) => {
    const rows = await reads.rows(
      [{ wanted, rows: { table: wanted.table, columns: [], below: [] } }],
      readTurns(),
    );
    return rows.map((row) => String(row['id'])).sort();
  };
  const reading = (caller = local) => {
    const grants = {
      runtime: authorise(caller, 'runtime:read'),
      release: authorise(caller, 'release:read'),
      deployment: authorise(caller, 'deployment:read'),
    };
    if (!grants.runtime || !grants.release || !grants.deployment) throw new Error('may not read');
    return { runtime: grants.runtime, release: grants.release, deployment: grants.deployment };
  };

  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
    reads = publicReads(store, silentLog);
    const sample = <T>(arbitrary: fc.Arbitrary<T>) => fc.sample(arbitrary, { numRuns: ROWS, seed: 7 });
    // Names are unique among what is alive; the number tells twins apart without changing what they begin with.
    const twins = new Map<string, number>();
    const unique = (name: string) => {
      const before = twins.get(name) ?? 0;
      twins.set(name, before + 1);
      return before === 0 ? name : `${name}${before}`;
    };
    for (const row of sample(
      fc.record({ name: pick(NAMES), labels, environment: pick(ENVIRONMENTS), namespace: pick(NAMESPACES) }),
    )) {
      await seedRuntime(store, { ...row, name: unique(`r${row.name}`).slice(1) + unique('') });
    }
    const [runtime] = (await store.pool.query<{ id: string }>('SELECT id FROM runtime LIMIT 1')).rows;
    for (const row of sample(
      fc.record({
        name: pick(NAMES),
        app: pick(NAMES),
        labels,
        phase: pick(PHASES),
        namespace: pick(NAMESPACES),
      }),
    )) {
      await seedDeployment(store, {
        ...row,
        name: row.name + unique('d'),
        runtimeId: runtime?.id ?? newId('RUNTIME'),
      });
    }
    for (const row of sample(
      fc.record({ app: pick(NAMES), label: pick(NAMES), namespace: pick(NAMESPACES) }),
    )) {
      await seedRelease(store, { ...row, label: row.label + unique('l') });
    }
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });

  it('for deployments', async () => {
    const rows = await store.prisma.deployment.findMany({
      select: {
        id: true,
        namespace: true,
        name: true,
        app: true,
        labels: true,
        phase: true,
        desiredState: true,
        origin: true,
        runtimeId: true,
      },
    });
    const filter = filterOf({
      namespace: field(NAMESPACES, true),
      name: field([...NAMES, ...rows.slice(0, 5).map(({ name }) => name)], true),
      app: field(NAMES, true),
      phase: field(PHASES, false),
      desiredState: field(['DEPLOYED', 'UNDEPLOYED'], false),
      origin: field(['MANAGED'], false),
      runtimeId: field(
        rows.slice(0, 1).map(({ runtimeId }) => runtimeId),
        false,
      ),
    });
    let hits = 0;
    await fc.assert(
      fc.asyncProperty(filter, async (input: DeploymentFilter) => {
        const predicate = deploymentFilterSchema.parse(input);
        const inMemory = rows.filter((row) => matches(predicate, row)).map(({ id }) => id);
        expect(await listed(deploymentsWanted(predicate, reading().deployment))).toEqual(inMemory.sort());
        const inSnapshot = await deploymentSnapshot(predicate, reading().deployment)(store.pool, 1_000);
        expect(inSnapshot.map(({ id }) => id).sort()).toEqual(inMemory);
        if (inMemory.length > 0 && inMemory.length < rows.length) hits += 1;
      }),
      { numRuns: 300 },
    );
    expect(hits, 'filters that tell rows apart').toBeGreaterThan(50);
  });

  it('for phases after every move between common and rare ones, whoever makes it', async () => {
    const { id } = await seedDeployment(store, { phase: 'RUNNING' });
    for (const phase of ['UPDATE_FAILED', 'PENDING', 'RUNNING', 'PENDING', 'DELETED'] as const) {
      await store.pool.query(
        'UPDATE deployment SET version = version + 1, phase = $2, deleted_at = $3 WHERE id = $1',
        [id, phase, phase === 'DELETED' ? new Date() : null],
      );
      const predicate = deploymentFilterSchema.parse({ phase: { equals: phase } });
      const found = await deploymentSnapshot(predicate, reading().deployment)(store.pool, 1_000);
      expect(found.some((row) => row.id === id)).toBe(phase !== 'DELETED');
      const { rows } = await store.pool.query('SELECT exceptional FROM deployment WHERE id = $1', [id]);
      expect(rows).toEqual([{ exceptional: phase !== 'RUNNING' && phase !== 'DELETED' }]);
    }
  });

  it('for runtimes, whose environment may be absent', async () => {
    const rows = await store.prisma.runtime.findMany({
      select: { id: true, namespace: true, name: true, type: true, environment: true, labels: true },
    });
    const filter = filterOf({
      namespace: field(NAMESPACES, true),
      name: field(NAMES, true),
      type: field(['external', 'noop'], true),
      environment: field(['prod', 'prod-eu', 'stage', 'none'], true),
    });
    await fc.assert(
      fc.asyncProperty(filter, async (input) => {
        const predicate = runtimeFilterSchema.parse(input);
        const inMemory = rows.filter((row) => matches(predicate, row)).map(({ id }) => id);
        expect(await listed(runtimesWanted(predicate, reading().runtime))).toEqual(inMemory.sort());
      }),
      { numRuns: 300 },
    );
  });

  it('for releases', async () => {
    const rows = await store.prisma.release.findMany({
      select: { id: true, namespace: true, app: true, label: true },
    });
    const filter = filterOf(
      { namespace: field(NAMESPACES, true), app: field(NAMES, true), label: field(NAMES, true) },
      false,
    );
    await fc.assert(
      fc.asyncProperty(filter, async (input) => {
        const predicate = releaseFilterSchema.parse(input);
        const inMemory = rows.filter((row) => matches(predicate, row)).map(({ id }) => id);
        expect(await listed(releasesWanted(predicate, reading().release))).toEqual(inMemory.sort());
      }),
      { numRuns: 200 },
    );
  });

  it('and never reach beyond the grant, nor to what is deleted unless asked for', async () => {
    const everything = deploymentFilterSchema.parse({ not: { name: { equals: 'nobody' } } });
    const grant = reading(someone({ roles: ['VIEWER'], namespaces: ['other'] })).deployment;
    const rows: RowsRead = { table: 'deployment', columns: ['namespace'], below: [] };
    const seen = await reads.rows([{ wanted: deploymentsWanted(everything, grant), rows }], readTurns());
    expect(new Set(seen.map((row) => row['namespace']))).toEqual(new Set(['other']));
    const [victim] = await store.prisma.deployment.findMany({
      where: { namespace: 'other' },
      select: { id: true },
      take: 1,
    });
    await store.pool.query(
      `UPDATE deployment SET phase = 'DELETED', deleted_at = now(), version = version + 1 WHERE id = $1`,
      [victim?.id],
    );
    const all = (deleted: boolean) => listed(deploymentsWanted(everything, grant, deleted));
    expect(await all(false)).toHaveLength(seen.length - 1);
    expect(await all(true)).toHaveLength(seen.length);
  });
});
