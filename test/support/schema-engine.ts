/**
 * Prisma's schema engine as WebAssembly: what `prisma migrate diff` does, without the native engine that the CLI would
 * download. For the drift guard and for making migrations.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlMigrationAwareDriverAdapterFactory,
} from '@prisma/driver-adapter-utils';
import pg from 'pg';
import type { Connection } from '../../src/store/embedded.js';

type Bindings = typeof import('@prisma/schema-engine-wasm/schema_engine_bg');

type WebAssemblyApi = {
  instantiate(
    code: Uint8Array,
    imports: object,
  ): Promise<{ instance: { exports: { __wbindgen_start(): void } } }>;
};

// Node has it; the types that describe it are the browser's.
const { WebAssembly: webAssembly } = globalThis as unknown as { WebAssembly: WebAssemblyApi };

let bindings: Promise<Bindings> | undefined;

/** The package's own entry imports the `.wasm` file as a module, which Node does not do. */
async function load(): Promise<Bindings> {
  const file = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const loaded = (await import(file)) as Bindings; // Its own types.
  const wasm = readFileSync(file.replace(/\.js$/, '.wasm'));
  const { instance } = await webAssembly.instantiate(wasm, { './schema_engine_bg.js': loaded });
  loaded.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
  // The engine reports a panic here before it aborts.
  Object.assign(globalThis, {
    PRISMA_WASM_PANIC_REGISTRY: { set_message: (message: string) => process.stderr.write(`${message}\n`) },
  });
  return loaded;
}

/** The SQL statements that would bring the database to the datamodel; none when they agree. */
export async function diffToDatamodel(database: Connection, datamodel: string): Promise<string[]> {
  const { SchemaEngine } = await (bindings ??= load());
  const pool = new pg.Pool({ ...database, max: 2 });
  try {
    const files = [{ path: 'schema.prisma', content: datamodel }];
    const adapter = bindMigrationAwareSqlAdapterFactory(catalogAdapter(pool));
    const engine = await SchemaEngine.new(
      { datamodels: [['schema.prisma', datamodel]] },
      () => undefined,
      adapter,
    );
    try {
      const { stdout } = await engine.diff({
        from: { tag: 'schemaDatasource', files, configDir: '.' },
        to: { tag: 'schemaDatamodel', files },
        script: true,
        exitCode: null,
        filters: { externalTables: [], externalEnums: [] },
      });
      return statementsOf(stdout ?? '');
    } finally {
      engine.free();
    }
  } finally {
    await pool.end();
  }
}

/** The engine writes a comment above each statement, one statement after another, without functions. */
function statementsOf(script: string): string[] {
  return script
    .split(/;\s*$/m)
    .map((statement) => statement.replaceAll(/^\s*--.*$/gm, '').trim())
    .filter((statement) => statement !== '');
}

const CHAR = 18;
const BPCHAR = 1042;

/** The catalog's `"char"` columns are unknown to the adapter, and the engine wants them as characters. */
function catalogAdapter(pool: pg.Pool): SqlMigrationAwareDriverAdapterFactory {
  const characters = new Map<string, number[]>();
  const query = pool.query.bind(pool) as (config: pg.QueryArrayConfig) => Promise<pg.QueryArrayResult>; // The adapter's only form.
  Object.assign(pool, {
    query: async (config: pg.QueryArrayConfig) => {
      const result = await query(config);
      const found = result.fields.flatMap((field, index) => (field.dataTypeID === CHAR ? [index] : []));
      characters.set(config.text, found);
      for (const index of found) Object.assign(result.fields[index] ?? {}, { dataTypeID: BPCHAR });
      return result;
    },
  });
  const factory = new PrismaPg(pool);
  const connect = factory.connect.bind(factory);
  return Object.assign(factory, {
    connect: async () => {
      const connection = await connect();
      const queryRaw = connection.queryRaw.bind(connection);
      return Object.assign(connection, {
        queryRaw: async (raw: Parameters<typeof queryRaw>[0]) => {
          const result = await queryRaw(raw);
          for (const index of characters.get(raw.sql) ?? []) {
            result.columnTypes[index] = ColumnTypeEnum.Character;
          }
          return result;
        },
      });
    },
  });
}
