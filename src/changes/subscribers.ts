/**
 * Who may want a change: found by kind and then by namespace or object id, so that a change costs the streams that can
 * match it and not all that are open. Streams that ask for the same are one interest, and their filter is asked once.
 */
import { OBJECT_KINDS, type ObjectKind } from '../kernel/ids.js';
import type { DecodedRow } from './catalogue.js';
import type { Offer } from './mailbox.js';
import type { StreamRequest } from './stream-types.js';
import type { Change } from './types.js';

/** Kinds whose objects live in no namespace: a limit to namespaces says nothing of them. */
const OUTSIDE_NAMESPACES: ReadonlySet<ObjectKind> = new Set(['AGENT', 'TOKEN']);

type Scope = Pick<StreamRequest, 'kinds' | 'namespaces' | 'objectIds'>;
export interface Subscriber {
  readonly request: StreamRequest;
  /**
   * A change that its filter holds, or held before; the cursor is the change's own. Must not throw. True: to be called
   * `told` when everything of this step was delivered.
   */
  deliver(offer: Offer): boolean;
  told(): void;
}

class Interest {
  /** Of whoever came first: equal keys, so equal answers. */
  readonly request: StreamRequest;
  readonly #members = new Set<Subscriber>();
  #listed: readonly Subscriber[] | undefined;

  constructor(request: StreamRequest) {
    this.request = request;
  }

  get size(): number {
    return this.#members.size;
  }

  /** A list that stays as it is: a subscriber may leave, or another come, while one is told. */
  get members(): readonly Subscriber[] {
    return (this.#listed ??= [...this.#members]);
  }

  add(subscriber: Subscriber): void {
    this.#members.add(subscriber);
    this.#listed = undefined;
  }

  remove(subscriber: Subscriber): void {
    this.#members.delete(subscriber);
    this.#listed = undefined;
  }
}

interface KindIndex {
  readonly all: Set<Interest>;
  readonly byNamespace: Map<string, Set<Interest>>;
  readonly byObject: Map<string, Set<Interest>>;
}

export class Subscribers {
  readonly #kinds = new Map<ObjectKind, KindIndex>(
    OBJECT_KINDS.map((kind) => [kind, { all: new Set(), byNamespace: new Map(), byObject: new Map() }]),
  );
  /** By `interestKey`. */
  readonly #interests = new Map<string | Subscriber, Interest>();
  #size = 0;

  /** How many are attached now. */
  get size(): number {
    return this.#size;
  }

  get interests(): number {
    return this.#interests.size;
  }

  add(subscriber: Subscriber): void {
    this.#size += 1;
    const key = interestKey(subscriber);
    let interest = this.#interests.get(key);
    if (!interest) {
      interest = new Interest(subscriber.request);
      this.#interests.set(key, interest);
      this.#index(interest);
    }
    interest.add(subscriber);
  }

  remove(subscriber: Subscriber): void {
    const key = interestKey(subscriber);
    const interest = this.#interests.get(key);
    if (!interest) return;
    this.#size -= 1;
    interest.remove(subscriber);
    if (interest.size > 0) return;
    this.#interests.delete(key);
    this.#unindex(interest);
  }

  /** Tells everybody whose filter holds an object, or held it, of the rows of a step. */
  tell(rows: readonly DecodedRow[]): void {
    const waiting: Subscriber[] = [];
    for (const row of rows) this.#tellOne(row, waiting);
    for (const subscriber of waiting) subscriber.told();
  }

  #tellOne({ change, bytes }: DecodedRow, waiting: Subscriber[]): void {
    const earlier = earlierOf(change);
    for (const { request, members } of this.#of(change)) {
      const verdict = judge(request, change, earlier);
      if (!verdict) continue;
      const item = { type: 'change', change, ...verdict, cursor: change.cursor } as const;
      const offer = { item, bytes };
      for (const subscriber of members) if (subscriber.deliver(offer)) waiting.push(subscriber);
    }
  }

  /** A copy: the last of an interest may leave, or a first come, while one is told. */
  #of(change: Change): Interest[] {
    const index = this.#kinds.get(change.kind);
    if (!index) return [];
    const found = [...index.all];
    const inNamespace = change.namespace === null ? undefined : index.byNamespace.get(change.namespace);
    if (inNamespace) found.push(...inNamespace);
    for (const interest of index.byObject.get(change.objectId) ?? []) {
      if (allows(interest.request, change)) found.push(interest);
    }
    return found;
  }

  #index(interest: Interest): void {
    for (const [map, key] of this.#places(interest.request)) {
      const set = map.get(key);
      if (set) set.add(interest);
      else map.set(key, new Set([interest]));
    }
    for (const index of this.#unkeyed(interest.request)) index.all.add(interest);
  }

  #unindex(interest: Interest): void {
    for (const [map, key] of this.#places(interest.request)) {
      const set = map.get(key);
      set?.delete(interest);
      if (set?.size === 0) map.delete(key);
    }
    for (const index of this.#unkeyed(interest.request)) index.all.delete(interest);
  }

  #places({ kinds, namespaces, objectIds }: Scope): [Map<string, Set<Interest>>, string][] {
    return kinds.flatMap((kind) => {
      const index = this.#kinds.get(kind);
      if (!index) return [];
      if (objectIds) {
        return [...objectIds].map((id): [Map<string, Set<Interest>>, string] => [index.byObject, id]);
      }
      if (namespaces === 'all' || OUTSIDE_NAMESPACES.has(kind)) return [];
      return [...namespaces].map((name): [Map<string, Set<Interest>>, string] => [index.byNamespace, name]);
    });
  }

  #unkeyed({ kinds, namespaces, objectIds }: Scope): KindIndex[] {
    if (objectIds) return [];
    return kinds.flatMap((kind) => {
      const index = this.#kinds.get(kind);
      return index && (namespaces === 'all' || OUTSIDE_NAMESPACES.has(kind)) ? [index] : [];
    });
  }
}

/** Equal for streams whose scope and filter are equal. The scope is not left to whoever names the filter. */
function interestKey(subscriber: Subscriber): string | Subscriber {
  const { kinds, namespaces, objectIds, filterKey } = subscriber.request;
  if (filterKey === undefined || objectIds) return subscriber;
  return JSON.stringify([kinds, namespaces === 'all' ? 'all' : [...namespaces].sort(), filterKey]);
}

/** What the index answers, asked of one change: for rows that come from the ring or from the log. */
export function allows({ kinds, namespaces, objectIds }: Scope, change: Change): boolean {
  if (!kinds.includes(change.kind)) return false;
  if (objectIds && !objectIds.has(change.objectId)) return false;
  return namespaces === 'all' || change.namespace === null || namespaces.has(change.namespace);
}

/** The object before the change, as far as filters read it; null: there was none. */
export function earlierOf({ after, before }: Change): Change['after'] | null {
  return before === null ? null : ({ ...after, ...before } as Change['after']); // of one kind, so the fields of one fit the other
}

/**
 * Whether the stream's filter held the object before the change and holds it after; undefined where that is no change for
 * this stream. A deleted object is in no filter, whatever its last state says.
 */
export function judge(
  request: StreamRequest,
  change: Change,
  earlier = earlierOf(change),
): { had: boolean; has: boolean } | undefined {
  if (request.changed && !request.changed(change)) return undefined;
  const { after } = change;
  const has = change.op !== 'DELETE' && !isDeleted(after) && request.matches(change.kind, after);
  const had = earlier !== null && !isDeleted(earlier) && request.matches(change.kind, earlier);
  return had || has ? { had, has } : undefined;
}

function isDeleted(object: Change['after']): boolean {
  return 'deletedAt' in object && object.deletedAt !== null;
}
