import { LRUCache } from 'lru-cache';

/** Objects kept at most; the least used make room. A cached deployment is a few KiB. */
const OBJECT_CACHE_MAX = 10_000;

/**
 * The newest known version of objects, fed by this process's own writes and by the feed. An object at one version never
 * changes within one history of the database, so a decision about (id, version) is right even from an old cache; whether that version is still the newest
 * only the database can say, and a write asks it with the version in its WHERE.
 */
export class ObjectCache<Row extends { readonly id: string; readonly version: number }> {
  readonly #rows: LRUCache<string, Row>;

  constructor(max = OBJECT_CACHE_MAX) {
    this.#rows = new LRUCache({ max });
  }

  get size(): number {
    return this.#rows.size;
  }

  newest(id: string): Row | undefined {
    return this.#rows.get(id);
  }

  /** Keeps the row unless a newer one is known: writes and feed may report in any order. */
  note(row: Row): void {
    const known = this.#rows.peek(row.id);
    if (known === undefined || known.version < row.version) this.#rows.set(row.id, row);
  }

  forget(id: string): void {
    this.#rows.delete(id);
  }

  /** When the database has another history: its versions are other facts than those held here. */
  clear(): void {
    this.#rows.clear();
  }
}
