/**
 * Which history of the database cursors belong to. Transaction ids say when a row became visible only within one history:
 * after a restore, or on a standby that was promoted, the same ids mean something else. A new epoch then makes every
 * older cursor CURSOR_EXPIRED.
 */
import { FIRST_XID } from '../kernel/snapshot.js';
import type { Database, Queryable } from '../store/database.js';
import { readLogState, type LogState } from './log.js';

/** A standby's snapshot leaves out the primary's open transactions: reading on would lose what they write. */
export class StandbyError extends Error {
  override readonly name = 'StandbyError';
  constructor() {
    super('the database is a standby: the change log can only be followed on the primary');
  }
}

/**
 * Asked at each connect. Throws StandbyError on a standby; gives the log a new epoch where system identifier or timeline
 * are not the recorded ones.
 */
export async function checkHistory(
  session: Queryable,
  database: Pick<Database, 'inTransaction'>,
): Promise<LogState> {
  const recovery = await session.query<{ standby: boolean }>({
    text: 'select pg_is_in_recovery() as standby',
  });
  if (recovery.rows[0]?.standby !== false) throw new StandbyError();
  const { rows } = await session.query<{ same: boolean; epoch: string }>({
    text: `select epoch, system_identifier = (select s.system_identifier::text from pg_control_system() s)
      and timeline = ${TIMELINE} as same from log_state`,
  });
  const [recorded] = rows;
  if (!recorded) throw new Error('the change log has no state row');
  if (!recorded.same) await rotateEpoch(database, recorded.epoch);
  return readLogState(session);
}

// The first eight hexadecimal digits of a WAL file's name.
const TIMELINE = `('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int`;

/**
 * Begins a new epoch. Run it by hand after restoring a dump. `onlyFrom`: nothing happens if the epoch is no longer that
 * one, so that replicas that notice together rotate once.
 *
 * Rows whose transaction id this cluster has not used up get the first one, in the same transaction: a dump's ids may
 * lie ahead of those that this cluster gives out, and such rows would turn up as new, one day. After a promotion hardly
 * any do, however long the log is.
 */
export async function rotateEpoch(
  database: Pick<Database, 'inTransaction'>,
  onlyFrom?: string,
): Promise<void> {
  await database.inTransaction(async (tx) => {
    const { rows } = await tx.query<{ epoch: string }>('select epoch from log_state for update');
    if (onlyFrom !== undefined && rows[0]?.epoch !== onlyFrom) return;
    await tx.query('set local statement_timeout = 0'); // after a dump was restored, every row of the log may be rewritten
    await tx.query(
      `update change set xid = '${FIRST_XID}' where xid >= pg_snapshot_xmin(pg_current_snapshot())`,
    );
    await tx.query(
      `update log_state set epoch = replace(gen_random_uuid()::text, '-', ''), floor_xid = '${FIRST_XID}', timeline = ${TIMELINE},
         system_identifier = (select s.system_identifier::text from pg_control_system() s)`,
    );
  });
}
