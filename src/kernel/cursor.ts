/**
 * A change cursor as opaque text. It names a place in the log that every replica understands: the moment of the database
 * up to which everything was delivered and, inside a step from one moment to the next, the last row delivered.
 *
 * The text grants nothing: what may be seen is decided anew by whoever resumes. The checksum tells damage and guesses
 * from cursors of ours; it is no signature.
 */
import { createHash } from 'node:crypto';

import type { Snapshot } from './snapshot.js';

export type Cursor =
  /** Everything that `at` sees was delivered, and nothing else. */
  | { readonly form: 'at'; readonly epoch: string; readonly at: Snapshot }
  /** Inside the step from `from` to `at`: of its rows those up to `seq` were delivered too. */
  | {
      readonly form: 'within';
      readonly epoch: string;
      readonly from: Snapshot;
      readonly at: Snapshot;
      readonly seq: bigint;
    }
  /** Inside a snapshot of the objects that was taken at `at` and is not complete: who resumes needs a new one. */
  | { readonly form: 'snapshot'; readonly epoch: string; readonly at: Snapshot };

/** About 3,000 transactions open at both ends of a step; far above what a server has connections for. */
export const CURSOR_MAX_CHARACTERS = 8_192;
const VERSION = 1;
const CHECKSUM_BYTES = 6;
const FORMS = ['at', 'within', 'snapshot'] as const;
const EPOCH_PATTERN = /^[0-9a-f]{32}$/;

/** Throws a RangeError when the cursor would be longer than CURSOR_MAX_CHARACTERS. */
export function encodeCursor(cursor: Cursor): string {
  if (cursor.form === 'within') return stepEncoder(cursor.epoch, cursor.from, cursor.at)(cursor.seq);
  return finish(body(cursor.form, cursor.epoch, [cursor.at]));
}

/** For the many cursors of one step: the snapshots, the long part, are packed once. */
export function stepEncoder(epoch: string, from: Snapshot, at: Snapshot): (seq: bigint) => string {
  const start = body('within', epoch, [from, at]);
  return (seq) => {
    const bytes = [...start];
    pushVarint(bytes, seq);
    return finish(bytes);
  };
}

/** Undefined for whatever no server wrote: too long, damaged, of a version that this build does not know. */
export function decodeCursor(text: string): Cursor | undefined {
  if (text.length > CURSOR_MAX_CHARACTERS || !/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  // Unused bits of the last character would give one cursor several texts.
  if (bytes.toString('base64url') !== text || bytes.length <= CHECKSUM_BYTES) return undefined;
  const end = bytes.length - CHECKSUM_BYTES;
  if (!checksum(bytes.subarray(0, end)).equals(bytes.subarray(end))) return undefined;
  return read(new Reader(bytes.subarray(0, end)));
}

function read(reader: Reader): Cursor | undefined {
  try {
    const [version, formIndex] = [reader.byte(), reader.byte()];
    const form = FORMS[formIndex];
    if (version !== VERSION || form === undefined) return undefined;
    const epoch = reader.hex(16);
    if (form !== 'within') {
      const at = reader.snapshot();
      return reader.ended ? { form, epoch, at } : undefined;
    }
    const [from, at, seq] = [reader.snapshot(), reader.snapshot(), reader.varint()];
    return reader.ended ? { form, epoch, from, at, seq } : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined; // the reader ran past the end
    throw error;
  }
}

function body(form: Cursor['form'], epoch: string, snapshots: readonly Snapshot[]): number[] {
  if (!EPOCH_PATTERN.test(epoch)) throw new Error('an epoch is 32 hexadecimal digits');
  const bytes = [VERSION, FORMS.indexOf(form), ...Buffer.from(epoch, 'hex')];
  for (const snapshot of snapshots) pushSnapshot(bytes, snapshot);
  return bytes;
}

/** xmax, the number of running transactions, then each as the distance to the one above: mostly one byte. */
function pushSnapshot(bytes: number[], snapshot: Snapshot): void {
  pushVarint(bytes, snapshot.xmax);
  pushVarint(bytes, BigInt(snapshot.xip.length));
  let above = snapshot.xmax;
  for (const xid of snapshot.xip.toReversed()) {
    pushVarint(bytes, above - xid - 1n);
    above = xid;
  }
}

function pushVarint(bytes: number[], value: bigint): void {
  let rest = value;
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
}

function finish(bytes: number[]): string {
  const packed = Buffer.from(bytes);
  const text = Buffer.concat([packed, checksum(packed)]).toString('base64url');
  if (text.length > CURSOR_MAX_CHARACTERS) {
    throw new RangeError('too many open transactions for a change cursor');
  }
  return text;
}

function checksum(bytes: Buffer): Buffer {
  return createHash('sha256')
    .update('slipway change cursor')
    .update(bytes)
    .digest()
    .subarray(0, CHECKSUM_BYTES);
}

/** Throws RangeError where the bytes end too early or say what no writer says. */
class Reader {
  #offset = 0;
  readonly #bytes: Buffer;
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.#offset === this.#bytes.length;
  }

  byte(): number {
    const value = this.#bytes[this.#offset];
    if (value === undefined) throw new RangeError('ended early');
    this.#offset += 1;
    return value;
  }

  hex(length: number): string {
    return Buffer.from(Array.from({ length }, () => this.byte())).toString('hex');
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        if ((byte === 0 && shift > 0n) || value >= 1n << 63n) throw new RangeError('not a number of ours');
        return value;
      }
    }
    throw new RangeError('number too long');
  }

  snapshot(): Snapshot {
    const xmax = this.varint();
    const count = this.varint();
    if (count > BigInt(this.#bytes.length)) throw new RangeError('more entries than bytes');
    const xip: bigint[] = [];
    let above = xmax;
    for (let i = 0n; i < count; i += 1n) {
      above -= this.varint() + 1n;
      if (above < 0n) throw new RangeError('below the first transaction');
      xip.push(above);
    }
    return { xmax, xip: xip.reverse() };
  }
}
