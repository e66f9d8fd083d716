/** What the rest of the server knows of the feed: its interface, and what its streams are asked for and give. */
import type { ObjectKind } from '../kernel/ids.js';
import type { Tap } from '../kernel/tap.js';
import type { Queryable } from '../store/database.js';
import type { Change, Projection } from './types.js';

/** One feed per process: reads the log once and tells every stream of this process. */
export interface Feed {
  /** Resolves when the first step was read. Rejects when the database cannot be fed from (a standby). */
  start(): Promise<void>;
  /** Ends every stream (UNAVAILABLE), every session and every timer. */
  stop(): Promise<void>;
  /** A hint that something was committed; wired to `database.onCommit`. */
  wake(): void;
  /** Whether the last successful step is younger than 5 s: for the readiness probe. */
  readonly current: boolean;
  /** The cursor of now, asked of the database. */
  head(): Promise<string>;
  /** The cursor of a moment that was read elsewhere: the text that `LOG_POSITION` of the store gives. */
  cursorOf(snapshot: string): string;
  /** Called for every change of the kinds, before any stream is told of the same step. Must not throw. */
  listen(kinds: readonly ObjectKind[], listener: (change: Change) => void): () => void;
  /**
   * Called when the database turns out to have another history than the one read so far (restored, or a standby that was
   * promoted): what was learned of it before may never have been. Before any stream hears of it. Must not throw.
   */
  onNewHistory(listener: () => void): () => void;
  /** Attached at once: nothing is missed between this call and the first `take()`. */
  open(request: StreamRequest): ChangeStream;
  /** Forward through the log's slim rows, from a cursor or from the beginning. Rejects with StreamEnded. */
  page(request: PageRequest): Promise<ChangePage>;
  /** One object's changes, newest first, read elsewhere: of one more row than `limit` the page says that there is more. */
  timelineOf(read: TimelineRead, limit: number): ChangePage;
  readonly stats: FeedStats;
}

export interface StreamRequest {
  readonly kinds: readonly ObjectKind[];
  /** Limits kinds that live in namespaces; others (agents, tokens) are not touched by it. */
  readonly namespaces: 'all' | ReadonlySet<string>;
  readonly objectIds?: ReadonlySet<string> | undefined;
  /** EVERY: each change once. LATEST: the newest of each object; what a slow reader missed is folded. */
  readonly mode: 'EVERY' | 'LATEST';
  /** Equal keys: `matches` and `changed` answer alike, and are asked once for all. Undefined: nobody else's answer is theirs. */
  readonly filterKey?: string | undefined;
  /** The client's filter, asked about the object after a change and as it was before it. */
  matches(kind: ObjectKind, object: Projection): boolean;
  /** EVERY: which changes count at all, a phase that moved, say. */
  changed?(change: Change): boolean;
  /** A change cursor. Null: EVERY begins now, LATEST with a snapshot. */
  readonly after: string | null;
  /** What a cursor that can no longer be honoured does to a LATEST stream: an error, or a Reset and a new snapshot. */
  readonly onExpired: 'ERROR' | 'SNAPSHOT';
  /** For LATEST: reads the objects in the filter. Equal keys within 50 ms share one read. */
  readonly snapshot?: {
    readonly key: string;
    readonly kind: ObjectKind;
    read(tx: Queryable): Promise<readonly Projection[]>;
  };
}

/** `take` throws StreamEnded when it does not end by its reader. What a stream reads of the log, it reads while one waits. */
export interface ChangeStream extends Tap<StreamItem> {
  /** One at a time. Undefined: closed. Rejects with StreamEnded, once; undefined from then on. */
  next(): Promise<StreamItem | undefined>;
  close(): void;
  /** Items that wait to be taken. */
  readonly size: number;
  /** Where the reader stands: resume after this misses nothing. Null until that is known. For a final bookmark. */
  readonly cursor: string | null;
}

export type StreamItem =
  /** `had` and `has`: whether this stream's filter held the object before and holds it now. Never both false. */
  | {
      readonly type: 'change';
      readonly change: Change;
      readonly had: boolean;
      readonly has: boolean;
      readonly cursor: string;
    }
  /** A row of a snapshot. Its cursor leads to a new snapshot, since this one is not complete. */
  | {
      readonly type: 'object';
      readonly object: Projection;
      readonly kind: ObjectKind;
      readonly cursor: string;
      readonly at: Date;
    }
  | { readonly type: 'snapshotEnd'; readonly cursor: string; readonly at: Date }
  | { readonly type: 'bookmark'; readonly cursor: string; readonly at: Date }
  /** What the client holds is void: a snapshot follows. */
  | {
      readonly type: 'reset';
      readonly reason: 'SLOW_CONSUMER' | 'CURSOR_EXPIRED';
      readonly cursor: string;
      readonly at: Date;
    };

export type StreamEndCode =
  'SLOW_CONSUMER' | 'CURSOR_EXPIRED' | 'CURSOR_INVALID' | 'SNAPSHOT_TOO_LARGE' | 'UNAVAILABLE';

/** Why a stream or a page of the log ended; `message` is for the client. */
export class StreamEnded extends Error {
  override readonly name = 'StreamEnded';
  readonly code: StreamEndCode;
  /** Where to resume, if that is possible. */
  readonly cursor: string | null;

  constructor(code: StreamEndCode, message: string, cursor: string | null = null, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.cursor = cursor;
  }
}

export interface PageRequest {
  readonly kinds: readonly ObjectKind[];
  readonly namespaces: 'all' | ReadonlySet<string>;
  readonly objectId?: string | undefined;
  /** A change cursor; null: from the beginning of the log. */
  readonly after: string | null;
  /** 1 to PAGE_MAX_ROWS. */
  readonly limit: number;
}

export interface TimelineRead {
  /** Slim rows, newest first. */
  readonly rows: readonly object[];
  /** `LOG_POSITION` at the moment of reading. */
  readonly position: string;
}

/** The slim row of a change, which outlives its payload. */
export type LogEntry = Pick<
  Change,
  | 'at'
  | 'kind'
  | 'objectId'
  | 'namespace'
  | 'op'
  | 'version'
  | 'from'
  | 'to'
  | 'reason'
  | 'message'
  | 'actor'
  | 'traceId'
  | 'cursor'
>;

export interface ChangePage {
  readonly entries: readonly LogEntry[];
  readonly hasMore: boolean;
  /** Behind the last entry, or, when nothing is left, the moment of the read. */
  readonly cursor: string;
}

/** For /metrics; counters since start unless they say otherwise. */
export interface FeedStats {
  readonly steps: number;
  readonly changes: number;
  readonly badRows: number;
  readonly reconnects: number;
  readonly listenReconnects: number;
  readonly snapshotReads: number;
  readonly ringResumes: number;
  readonly logResumes: number;
  readonly slowConsumers: number;
  readonly resets: number;
  /** Now. */
  readonly streams: number;
  /** Streams that the live feed tells. */
  readonly attached: number;
  /** Streams that wait for the feed to reach their moment. */
  readonly waiting: number;
  readonly pendingItems: number;
  readonly listeners: number;
  readonly ringChanges: number;
  readonly ringBytes: number;
}
