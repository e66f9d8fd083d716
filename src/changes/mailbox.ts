/**
 * What waits for one reader, bounded. Two kinds: EVERY keeps each change, LATEST the newest of each object. Both say no
 * when full; what then happens to the stream is stream.ts's business.
 */
import type { StreamItem } from './stream-types.js';

export const EVERY_MAX_CHANGES = 1_000;
export const LATEST_MAX_OBJECTS = 512;
export const MAILBOX_MAX_BYTES = 1024 * 1024;

type ChangeItem = Extract<StreamItem, { type: 'change' }>;
/** One change for everybody whose filter says the same of it: shared, never changed. */
export interface Offer {
  readonly item: ChangeItem;
  /** What it takes in memory, roughly. */
  readonly bytes: number;
}

export interface Mailbox {
  readonly size: number;
  readonly bytes: number;
  /** False: full. The offer was not taken, and nothing else changed. */
  offer(offer: Offer): boolean;
  take(): ChangeItem | undefined;
  clear(): void;
}

export class EveryMailbox implements Mailbox {
  #queue: (Offer | undefined)[] = [];
  #next = 0;
  #bytes = 0;

  get size(): number {
    return this.#queue.length - this.#next;
  }

  get bytes(): number {
    return this.#bytes;
  }

  offer(offer: Offer): boolean {
    // One change larger than the bound still gets through when nothing else waits: it could never be sent otherwise.
    const full = this.size >= EVERY_MAX_CHANGES || this.#bytes + offer.bytes > MAILBOX_MAX_BYTES;
    if (full && this.size > 0) return false;
    this.#queue.push(offer);
    this.#bytes += offer.bytes;
    return true;
  }

  take(): ChangeItem | undefined {
    const offer = this.#queue[this.#next];
    if (!offer) return undefined;
    this.#queue[this.#next] = undefined;
    this.#next += 1;
    this.#bytes -= offer.bytes;
    if (this.#next === this.#queue.length) {
      this.#queue.length = 0;
      this.#next = 0;
    } else if (this.#next * 2 >= this.#queue.length) {
      // Taken places are given back in halves, so that each change moves about once.
      this.#queue.splice(0, this.#next);
      this.#next = 0;
    }
    return offer.item;
  }

  clear(): void {
    this.#queue = [];
    this.#next = 0;
    this.#bytes = 0;
  }
}

/**
 * Folds the changes of one object into one: `had` of the first, `has` of the last, and the last one's place in the queue.
 * So the cursor of what is taken lies before every object that still waits, and a resume after it tells of them again.
 *
 * A resume may tell of an object's entry or leaving by its last step alone (Changed for one that the reader did not hold
 * yet, Removed for one that it never held): what it holds at the end is the same.
 */
export class LatestMailbox implements Mailbox {
  readonly #offers = new Map<string, Offer>();
  #bytes = 0;

  get size(): number {
    return this.#offers.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  offer(offer: Offer): boolean {
    const id = offer.item.change.objectId;
    const earlier = this.#offers.get(id);
    const bytes = this.#bytes - (earlier?.bytes ?? 0);
    const had = earlier ? earlier.item.had : offer.item.had;
    if (!had && !offer.item.has) {
      // Came and went unseen.
      this.#drop(id, earlier);
      return true;
    }
    const full = (!earlier && this.size >= LATEST_MAX_OBJECTS) || bytes + offer.bytes > MAILBOX_MAX_BYTES;
    if (full && this.size > (earlier ? 1 : 0)) return false;
    this.#drop(id, earlier);
    const folded = had === offer.item.had ? offer : { ...offer, item: { ...offer.item, had } };
    this.#offers.set(id, folded);
    this.#bytes += offer.bytes;
    return true;
  }

  take(): ChangeItem | undefined {
    // Most of the time nothing waits, and an iterator would be made for nothing.
    if (this.#offers.size === 0) return undefined;
    const [oldest] = this.#offers;
    if (!oldest) return undefined;
    this.#drop(...oldest);
    return oldest[1].item;
  }

  clear(): void {
    this.#offers.clear();
    this.#bytes = 0;
  }

  #drop(id: string, offer: Offer | undefined): void {
    if (offer && this.#offers.delete(id)) this.#bytes -= offer.bytes;
  }
}
