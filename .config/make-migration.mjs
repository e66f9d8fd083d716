/**
 * `npm run migration:make -- <name>`: writes the migration that brings the committed ones to schema.prisma, as a draft to
 * review. Runs under tsx, offline, on a database of its own. `--empty` writes one without statements, for what a
 * datamodel cannot say: triggers, functions, roles, checks, partial indexes.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

import { silentLog } from '../src/kernel/log.ts';
import { startEmbedded } from '../src/store/embedded.ts';
import { migrate } from '../src/store/migrate.ts';
import { diffToDatamodel } from '../test/support/schema-engine.ts';

const prisma = fileURLToPath(new URL('../prisma', import.meta.url));
const directory = join(prisma, 'migrations');

const [name, ...flags] = process.argv.slice(2);
if (name === undefined || !/^[a-z][a-z0-9_]{0,60}$/.test(name) || flags.some((flag) => flag !== '--empty')) {
  process.stderr.write('usage: npm run migration:make -- <name_in_lower_case> [--empty]\n');
  process.exit(2);
}

const statements = flags.includes('--empty') ? [] : await missingStatements();
if (statements.length === 0 && !flags.includes('--empty')) {
  process.stdout.write('The migrations already bring a database to schema.prisma: nothing to write.\n');
} else {
  const timestamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const folder = join(directory, `${timestamp}_${name}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'migration.sql'), statements.map((statement) => `${statement};\n`).join('\n'));
  process.stdout.write(
    `Wrote ${relative(process.cwd(), folder)}/migration.sql: review it before you commit it.\n`,
  );
}

async function missingStatements() {
  const dataDir = mkdtempSync(join(tmpdir(), 'slipway-migration-'));
  const embedded = await startEmbedded({ dataDir, log: silentLog, settings: { fsync: 'off' } });
  try {
    const client = new pg.Client(embedded.connection);
    await client.connect();
    try {
      await migrate(client, { directory });
    } finally {
      await client.end();
    }
    return await diffToDatamodel(embedded.connection, readFileSync(join(prisma, 'schema.prisma'), 'utf8'));
  } finally {
    await embedded.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
