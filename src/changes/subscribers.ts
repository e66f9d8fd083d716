/**
 * Who may want a change: found by kind and then by namespace or object id, so that a change costs the streams that can
 * match it and not all that are open.
 */
import { OBJECT_KINDS, type ObjectKind } from '../kernel/ids.js';
import type { Change, Projection } from './types.js';
import type { DecodedRow } from './catalogue.js';
import type { StreamRequest } from './stream-types.js';

/** Kinds whose objects live in no namespace: a limit to namespaces says nothing of them. */
const OUTSIDE_NAMESPACES: ReadonlySet<ObjectKind> = new Set(['AGENT', 'TOKEN']);

type Interest = Pick<StreamRequest, 'kinds' | 'namespaces' | 'objectIds'>;
export interface Subscriber {
  readonly request: StreamRequest;
  /** A change that passed the index; `cursor` is the change's own. */
  deliver(row: DecodedRow): void;
}

interface KindIndex {
  readonly all: Set<Subscriber>;
  readonly byNamespace: Map<string, Set<Subscriber>>;
  readonly byObject: Map<string, Set<Subscriber>>;
}

export class Subscribers {
  readonly #kinds = new Map<ObjectKind, KindIndex>(
    OBJECT_KINDS.map((kind) => [kind, { all: new Set(), byNamespace: new Map(), byObject: new Map() }]),
  );
  #size = 0;

  /** How many are attached now. */
  get size(): number {
    return this.#size;
  }

  add(subscriber: Subscriber): void {
    this.#size += 1;
    for (const [map, key] of this.#places(subscriber.request)) {
      const set = map.get(key);
      if (set) set.add(subscriber);
      else map.set(key, new Set([subscriber]));
    }
    for (const index of this.#unkeyed(subscriber.request)) index.all.add(subscriber);
  }

  remove(subscriber: Subscriber): void {
    this.#size -= 1;
    for (const [map, key] of this.#places(subscriber.request)) {
      const set = map.get(key);
      set?.delete(subscriber);
      if (set?.size === 0) map.delete(key);
    }
    for (const index of this.#unkeyed(subscriber.request)) index.all.delete(subscriber);
  }

  /** A copy: a subscriber may leave, or another come, while one is told. */
  of(change: Change): Subscriber[] {
    const index = this.#kinds.get(change.kind);
    if (!index) return [];
    const found = [...index.all];
    const inNamespace = change.namespace === null ? undefined : index.byNamespace.get(change.namespace);
    if (inNamespace) found.push(...inNamespace);
    for (const subscriber of index.byObject.get(change.objectId) ?? []) {
      if (allows(subscriber.request, change)) found.push(subscriber);
    }
    return found;
  }

  #places({ kinds, namespaces, objectIds }: Interest): [Map<string, Set<Subscriber>>, string][] {
    return kinds.flatMap((kind) => {
      const index = this.#kinds.get(kind);
      if (!index) return [];
      if (objectIds) {
        return [...objectIds].map((id): [Map<string, Set<Subscriber>>, string] => [index.byObject, id]);
      }
      if (namespaces === 'all' || OUTSIDE_NAMESPACES.has(kind)) return [];
      return [...namespaces].map((name): [Map<string, Set<Subscriber>>, string] => [index.byNamespace, name]);
    });
  }

  #unkeyed({ kinds, namespaces, objectIds }: Interest): KindIndex[] {
    if (objectIds) return [];
    return kinds.flatMap((kind) => {
      const index = this.#kinds.get(kind);
      return index && (namespaces === 'all' || OUTSIDE_NAMESPACES.has(kind)) ? [index] : [];
    });
  }
}

/** What the index answers, asked of one change: for rows that come from the ring or from the log. */
export function allows({ kinds, namespaces, objectIds }: Interest, change: Change): boolean {
  if (!kinds.includes(change.kind)) return false;
  if (objectIds && !objectIds.has(change.objectId)) return false;
  return namespaces === 'all' || change.namespace === null || namespaces.has(change.namespace);
}

/**
 * Whether the stream's filter held the object before the change and holds it after; undefined where that is no change for
 * this stream. A deleted object is in no filter, whatever its last state says.
 */
export function judge(request: StreamRequest, change: Change): { had: boolean; has: boolean } | undefined {
  const { after, before } = change;
  const has = change.op !== 'DELETE' && !isDeleted(after) && request.matches(change.kind, after);
  // Of one kind, so the fields of one fit the other.
  const earlier = before === null ? null : ({ ...after, ...before } as Projection);
  const had = earlier !== null && !isDeleted(earlier) && request.matches(change.kind, earlier);
  if (!had && !has) return undefined;
  return request.changed && !request.changed(change) ? undefined : { had, has };
}

function isDeleted(object: Change['after']): boolean {
  return 'deletedAt' in object && object.deletedAt !== null;
}
