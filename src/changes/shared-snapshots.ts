/** Reads the objects of a filter together with the moment they belong to. Equal requests close in time share one read. */
import type { Clock } from '../kernel/clock.js';
import { parseSnapshot, type Snapshot } from '../kernel/snapshot.js';
import type { Database } from '../store/database.js';
import { LOG_POSITION } from '../store/log-position.js';
import { StreamEnded, type StreamRequest } from './stream-types.js';
import type { Projection } from './types.js';

/** How long after its start a read is given to others too. What it misses of that time follows as changes. */
const SHARED_FOR_MS = 50;
/** More objects than this in one filter are no snapshot but a page of a list. */
export const SNAPSHOT_MAX_ROWS = 20_000;

export interface ObjectSnapshot {
  readonly rows: readonly Projection[];
  readonly position: Snapshot;
  readonly at: Date;
}
type Reader = NonNullable<StreamRequest['snapshot']>;

export class SharedSnapshots {
  readonly #pool: Pick<Database['readPool'], 'connect'>;
  readonly #clock: Clock;
  readonly #recent = new Map<string, Promise<ObjectSnapshot>>();
  reads = 0;

  constructor(pool: Pick<Database['readPool'], 'connect'>, clock: Clock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  read(reader: Reader): Promise<ObjectSnapshot> {
    const recent = this.#recent.get(reader.key);
    if (recent) return recent;
    const fresh = this.#read(reader);
    this.#recent.set(reader.key, fresh);
    this.#clock.after(SHARED_FOR_MS, () => this.#recent.delete(reader.key));
    return fresh;
  }

  async #read(reader: Reader): Promise<ObjectSnapshot> {
    this.reads += 1;
    const connection = await this.#pool.connect();
    let broken: Error | undefined;
    try {
      await connection.query('begin isolation level repeatable read read only');
      const { rows } = await connection.query<{ position: string; at: Date }>(
        `select ${LOG_POSITION} as position, clock_timestamp() as at`,
      );
      const objects = await reader.read(connection);
      await connection.query('commit');
      const [moment] = rows;
      if (!moment) throw new Error('the database told no moment');
      if (objects.length > SNAPSHOT_MAX_ROWS) {
        throw new StreamEnded(
          'SNAPSHOT_TOO_LARGE',
          `The filter holds more than ${SNAPSHOT_MAX_ROWS} objects: narrow it, or list pages and watch after the first page's cursor.`,
        );
      }
      return { rows: objects, position: parseSnapshot(moment.position), at: moment.at };
    } catch (error) {
      await connection.query('rollback').catch((cause: unknown) => {
        broken = new Error('rollback failed', { cause }); // such a connection must not serve the next reader
      });
      throw error;
    } finally {
      connection.release(broken);
    }
  }
}
