import { silentLog } from '../../src/kernel/log.js';
import { openDatabase, type Database } from '../../src/store/database.js';
import { makePool } from '../../src/store/pool.js';
import type { TestDatabase } from './test-server.js';

/** A handle on a test's database as a server of its own has one; several on one database are several replicas. */
export function openStore(database: TestDatabase, name = 'test', size = 10): Database {
  const pool = (role?: string) =>
    makePool({
      database: { connection: database.connection },
      ...(role === undefined ? {} : { role }),
      size,
      applicationName: role === undefined ? name : `${name}-read`,
      log: silentLog,
    });
  return openDatabase({ pool: pool(), readPool: pool('slipway_read') });
}
