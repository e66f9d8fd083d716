import type { SlipwayClient } from './client.js';
import {
  createCollection,
  type CollectionChange,
  type WatchedObject,
  type WatchEvent,
} from './collection.js';
import type { SlipwayDocument } from './document.js';
import type { StreamStatus } from './stream.js';

/** The union that the root field of a watch document gives. */
type EventOf<Result> = Result[keyof Result];
/** The object that its `…Added` member carries: the one selected field that is neither cursor nor time. */
export type WatchedObjectOf<Result> =
  EventOf<Result> extends infer Event
    ? Event extends { readonly __typename: `${string}Added` }
      ? Event[Exclude<keyof Event, '__typename' | 'cursor' | 'at'>]
      : never
    : never;

export interface WatchOptions<T> {
  /** Each difference, in order, after `objects` has it. */
  readonly onChange?: ((change: CollectionChange<T>) => void) | undefined;
  readonly onStatus?: ((status: StreamStatus) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** What was stored with the cursor that the variables carry as `after`. */
  readonly initial?: Iterable<T> | undefined;
}

export interface ObjectWatch<T> {
  /** The objects by id, as the server last told: always a state that was whole at some moment. */
  readonly objects: ReadonlyMap<string, T>;
  /** False before the first snapshot is complete, and while a newer one replaces it. */
  readonly synced: boolean;
  /** `objects` is the state at this cursor; null before there is one. */
  readonly cursor: string | null;
  /** The first snapshot is complete. Rejects if the watch failed before. */
  readonly ready: Promise<void>;
  /** The watch was closed; rejects with SlipwayStreamError if it failed. */
  readonly closed: Promise<void>;
  close(): void;
}

/**
 * Objects kept current from a `watch…` document that selects `__typename` and `cursor`, of the object at least `id` and
 * `version`, and of what was removed its `id`.
 */
export function watchObjects<
  Result extends object,
  Variables,
  T extends WatchedObject = WatchedObjectOf<Result> & WatchedObject,
>(
  client: SlipwayClient,
  document: SlipwayDocument<Result, Variables>,
  variables: Variables,
  options: WatchOptions<T> = {},
): ObjectWatch<T> {
  const collection = createCollection<T>(options.initial);
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  options.signal?.addEventListener('abort', stop, { once: true });
  if (options.signal?.aborted) stop();
  const events = subscribeTo(client, document, variables, {
    signal: controller.signal,
    onStatus: options.onStatus,
    onResync: () => collection.restart(),
    kind: 'watch',
  });
  let settle: { resolve: () => void; reject: (error: unknown) => void };
  const ready = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject };
    if (collection.synced) resolve();
  });
  const closed = run();
  // Whoever looks at only one of the two is told there.
  ready.catch(() => undefined);
  closed.catch(() => undefined);

  async function run(): Promise<void> {
    try {
      for await (const result of events) {
        for (const change of collection.apply(watchEvent<T>(Object.values(result)[0]))) {
          if (change.type === 'synced') settle.resolve();
          options.onChange?.(change);
        }
      }
      settle.reject(new Error('The watch was closed before its first snapshot was complete.'));
    } catch (error) {
      settle.reject(error);
      throw error;
    } finally {
      options.signal?.removeEventListener('abort', stop);
      stop();
    }
  }

  return {
    objects: collection.objects,
    get synced() {
      return collection.synced;
    },
    get cursor() {
      return events.cursor;
    },
    ready,
    closed,
    close: stop,
  };
}

type Subscribe = SlipwayClient['subscribe'];

function subscribeTo<Result, Variables>(
  client: SlipwayClient,
  document: SlipwayDocument<Result, Variables>,
  variables: Variables,
  options: Parameters<Subscribe>[2],
): AsyncIterable<Result> & { readonly cursor: string | null } {
  // Whether variables may be left out cannot be told for a type that is still open; here they are always given.
  const subscribe = client.subscribe as (
    document: SlipwayDocument<Result, Variables>,
    variables: Variables,
    options: Parameters<Subscribe>[2],
  ) => ReturnType<typeof client.subscribe<Result, Variables>>;
  return subscribe(document, variables, options);
}

const ADDED_OR_CHANGED = /^(.+)(?:Added|Changed)$/;
const REMOVED = /^.+Removed$/;

/** Any watch's event, by the names that all of them follow: `XAdded { x }`, `XChanged { x }`, `XRemoved { id }`. */
function watchEvent<T>(event: unknown): WatchEvent<T> {
  if (typeof event !== 'object' || event === null) return { type: 'other' };
  const fields = new Map<string, unknown>(Object.entries(event));
  const typename = String(fields.get('__typename'));
  if (typename === 'SnapshotEnd') return { type: 'snapshotEnd' };
  const [, name] = ADDED_OR_CHANGED.exec(typename) ?? [];
  if (name !== undefined) {
    const object = fields.get(name.charAt(0).toLowerCase() + name.slice(1));
    return { type: 'put', object: object as T }; // the document's own type says what stands there
  }
  const id = fields.get('id');
  return REMOVED.test(typename) && typeof id === 'string' ? { type: 'removed', id } : { type: 'other' };
}
