/**
 * Readers of the log as one would write them first. Both lose changes; tests that the feed passes must fail with them,
 * or they prove nothing.
 */
import type pg from 'pg';

export interface PollingReader {
  readonly told: Set<string>;
  poll(): Promise<void>;
}
type Row = { seq: string; object_id: string; version: number };

function reader(client: pg.Client, text: string): PollingReader {
  const told = new Set<string>();
  let last = '0';
  return {
    told,
    async poll() {
      const { rows } = await client.query<Row>(text, [last]);
      for (const { seq, object_id, version } of rows) {
        told.add(`${object_id}@${version}`);
        last = seq;
      }
    },
  };
}

/** `id > last`: a number that was drawn earlier may commit later. */
export const afterLastId = (client: pg.Client): PollingReader =>
  reader(client, 'select seq, object_id, version from change where seq > $1 order by seq');

/** The same behind a fence on the oldest running transaction: a newer transaction may hold an older number. */
export const afterLastSeqBehindFence = (client: pg.Client): PollingReader =>
  reader(
    client,
    'select seq, object_id, version from change where seq > $1 and xid < pg_snapshot_xmin(pg_current_snapshot()) order by seq',
  );
