/** What objects of a watch have in common. */
export interface WatchedObject {
  readonly id: string;
  readonly version: number;
}

/** An event of a `watch…` field, for any kind of object. */
export type WatchEvent<T> =
  | { readonly type: 'put'; readonly object: T }
  | { readonly type: 'removed'; readonly id: string }
  | { readonly type: 'snapshotEnd' }
  | { readonly type: 'other' };

export type CollectionChange<T> =
  | { readonly type: 'added'; readonly object: T }
  | { readonly type: 'changed'; readonly object: T; readonly previous: T }
  | { readonly type: 'removed'; readonly object: T }
  /** A snapshot is complete: all differences to what was there before came just before this. */
  | { readonly type: 'synced' };

export interface Collection<T> {
  /** What the server has, as far as it was told; while a new snapshot comes in, what the last one had. */
  readonly objects: ReadonlyMap<string, T>;
  readonly synced: boolean;
  /** A new snapshot is about to come. */
  restart(): void;
  /** Gives the differences, in order. */
  apply(event: WatchEvent<T>): readonly CollectionChange<T>[];
}

/**
 * Objects by id, kept current from the events of a watch. A snapshot takes effect as a whole when it is complete, so
 * that a list never shows half of one; what it no longer has is removed then. Pass `initial` when the watch resumes after
 * a cursor that was stored with those objects.
 */
export function createCollection<T extends WatchedObject>(initial?: Iterable<T>): Collection<T> {
  const objects = new Map<string, T>();
  for (const object of initial ?? []) objects.set(object.id, object);
  let incoming: Map<string, T> | null = initial === undefined ? new Map() : null;

  function put(object: T): readonly CollectionChange<T>[] {
    if (incoming) {
      incoming.set(object.id, object);
      return [];
    }
    const previous = objects.get(object.id);
    objects.set(object.id, object);
    return [previous ? { type: 'changed', object, previous } : { type: 'added', object }];
  }

  function remove(id: string): readonly CollectionChange<T>[] {
    if (incoming) {
      incoming.delete(id);
      return [];
    }
    const object = objects.get(id);
    objects.delete(id);
    return object ? [{ type: 'removed', object }] : [];
  }

  function complete(): readonly CollectionChange<T>[] {
    const snapshot = incoming ?? objects;
    incoming = null;
    const changes: CollectionChange<T>[] = [];
    for (const [id, object] of [...objects]) {
      if (snapshot.has(id)) continue;
      objects.delete(id);
      changes.push({ type: 'removed', object });
    }
    for (const [id, object] of snapshot) {
      const previous = objects.get(id);
      objects.set(id, object);
      if (!previous) changes.push({ type: 'added', object });
      else if (previous.version !== object.version) changes.push({ type: 'changed', object, previous });
    }
    return [...changes, { type: 'synced' }];
  }

  return {
    objects,
    get synced() {
      return incoming === null;
    },
    restart() {
      incoming = new Map();
    },
    apply(event) {
      switch (event.type) {
        case 'put':
          return put(event.object);
        case 'removed':
          return remove(event.id);
        case 'snapshotEnd':
          return complete();
        case 'other':
          return [];
      }
    },
  };
}
