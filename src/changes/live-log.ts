/** What one stream knows of the feed it belongs to; made by feed.ts, used by stream.ts. */
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import type { Snapshot } from '../kernel/snapshot.js';
import type { Queryable } from '../store/database.js';
import type { Ring } from './ring.js';
import type { SharedSnapshots } from './shared-snapshots.js';
import type { Subscribers } from './subscribers.js';

export interface LiveLog {
  readonly clock: Clock;
  readonly log: Log;
  /** For reads of the log behind the ring. */
  readonly database: Queryable;
  readonly snapshots: SharedSnapshots;
  readonly subscribers: Subscribers;
  readonly ring: Ring;
  readonly counters: StreamCounters;
  readonly epoch: string;
  /** Where the feed stands: everything it sees was told. */
  readonly position: Snapshot;
  /** The same moment as the database told it. */
  readonly snapshot: Snapshot;
  /** The cursor of `position`. */
  readonly positionCursor: string;
  /** False while a step is told in parts: nobody may begin to listen between them. */
  readonly settled: boolean;
  /** Why nothing is told at present, for clients; or undefined. */
  readonly outage: string | undefined;
  /** Resolves true when everything that `moment` sees was told and the feed is settled, false after `ms`. */
  reached(moment: Snapshot, ms: number): Promise<boolean>;
  /** A stream is gone. */
  forget(stream: object): void;
}

export interface StreamCounters {
  ringResumes: number;
  logResumes: number;
  slowConsumers: number;
  resets: number;
}
