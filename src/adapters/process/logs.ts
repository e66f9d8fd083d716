import { watch, type FSWatcher } from 'node:fs';

import { cutToBytes } from '../../kernel/text.js';
import { LOG_LINE_MAX_BYTES, LOG_TAIL_MAX, type LogLine, type LogRequest } from '../contract.js';
import type { Clock } from '../../kernel/clock.js';
import { namesIn } from './launches.js';
import { below, resourceFolder, type Layout } from './layout.js';
import { outBegin, outEnd, outFiles, outRead, type OutFiles } from './out.js';

/** The system's word about changed files may be lost, and is not given everywhere. */
const POLL_MS = 500;
/** What stands without an end of line for so long is told as it is. */
const PARTIAL_MS = 1000;
/** In the middle of a rotation, a reader is ahead of the files; not for so long. */
const AHEAD_MS = 2000;
const TAIL_CHUNK_BYTES = 65_536;

export interface LogSource {
  readonly layout: Layout;
  readonly clock: Clock;
  readonly deploymentId: string;
  readonly redact: (text: string) => string;
}

export async function* readLogs(source: LogSource, request: LogRequest): AsyncGenerator<LogLine> {
  const { signal, follow } = request;
  const tail = Math.min(Math.max(0, request.tail), LOG_TAIL_MAX);
  const readers = new Map<string, Reader>();
  for (const resource of await resourcesOf(source, request.resource)) {
    const reader = await Reader.atTail(source, resource, tail);
    readers.set(resource, reader);
    yield* reader.lines(signal, !follow);
  }
  if (!follow) return;
  const wake = waker(source.clock);
  try {
    while (!signal.aborted) {
      const resources = await resourcesOf(source, request.resource);
      if (resources.length === 0) return;
      for (const resource of resources) {
        const reader = readers.get(resource) ?? new Reader(source, resource, 0);
        readers.set(resource, reader);
        wake.add(resourceFolder(source.layout, source.deploymentId, resource));
        yield* reader.lines(signal, false);
      }
      await wake.next(signal);
    }
  } finally {
    wake.close();
  }
}

async function resourcesOf({ layout, deploymentId }: LogSource, resource: string | null): Promise<string[]> {
  const names = await namesIn(below(layout.runs, deploymentId));
  return resource === null ? names.sort() : names.filter((name) => name === resource);
}

/** One resource's place in what its programs wrote. Holds at most a chunk, and one unfinished line. */
class Reader {
  readonly #source: LogSource;
  readonly #resource: string;
  #offset: number;
  #partial = Buffer.alloc(0);
  #partialSinceMs = 0;
  /** When it last was not ahead of the files. */
  #aheadSinceMs: number;

  constructor(source: LogSource, resource: string, offset: number) {
    this.#source = source;
    this.#resource = resource;
    this.#offset = offset;
    this.#aheadSinceMs = source.clock.monotonicMs();
  }

  static async atTail(source: LogSource, resource: string, lines: number): Promise<Reader> {
    const files = await outFiles(resourceFolder(source.layout, source.deploymentId, resource));
    return new Reader(source, resource, await tailOffset(files, lines));
  }

  /** What was written since; with `all`, an unfinished line too. */
  async *lines(signal: AbortSignal, all: boolean): AsyncGenerator<LogLine> {
    const { layout, deploymentId, clock } = this.#source;
    const folder = resourceFolder(layout, deploymentId, this.#resource);
    for (;;) {
      if (signal.aborted) return;
      const files = await outFiles(folder);
      yield* this.#gap(files);
      const chunk = await outRead(files, this.#offset);
      // Rotated while it was read: those may be other bytes than the offset says.
      if ((await outFiles(folder)).base !== files.base) continue;
      if (chunk.length === 0) break;
      this.#offset += chunk.length;
      this.#partialSinceMs = clock.monotonicMs();
      yield* this.#split(chunk);
    }
    const waited = clock.monotonicMs() - this.#partialSinceMs >= PARTIAL_MS;
    if (this.#partial.length > 0 && (all || waited)) yield this.#line(this.#take(this.#partial.length));
  }

  /** Rotation overtook a slow reader; or, if it stays so, the files are new ones. */
  *#gap(files: OutFiles): Generator<LogLine> {
    const [begin, end] = [outBegin(files), outEnd(files)];
    const nowMs = this.#source.clock.monotonicMs();
    if (this.#offset <= end) this.#aheadSinceMs = nowMs;
    if (this.#offset < begin) {
      yield this.#line(Buffer.from(`[slipway: ${begin - this.#offset} bytes are no longer kept]`));
      this.#offset = begin;
    } else if (this.#offset > end && nowMs - this.#aheadSinceMs >= AHEAD_MS) {
      this.#offset = begin;
    }
  }

  *#split(chunk: Buffer): Generator<LogLine> {
    this.#partial = Buffer.concat([this.#partial, chunk]);
    for (;;) {
      const end = this.#partial.indexOf(0x0a);
      if (end >= 0 && end <= LOG_LINE_MAX_BYTES) {
        yield this.#line(this.#take(end));
        this.#take(1);
      } else if (this.#partial.length > LOG_LINE_MAX_BYTES) {
        yield this.#line(this.#take(pieceLength(this.#partial)));
      } else {
        return;
      }
    }
  }

  #take(length: number): Buffer {
    const taken = this.#partial.subarray(0, length);
    this.#partial = this.#partial.subarray(length);
    return taken;
  }

  #line(bytes: Buffer): LogLine {
    const text = this.#source.redact(bytes.toString('utf8').replace(/\r$/, '').replaceAll('\0', '\ufffd'));
    // What is no UTF-8 becomes longer when it is replaced.
    return { resource: this.#resource, text: cutToBytes(text, LOG_LINE_MAX_BYTES), at: null, stream: null };
  }
}

/** At most LOG_LINE_MAX_BYTES, ending where a character does. */
function pieceLength(bytes: Buffer): number {
  let length = LOG_LINE_MAX_BYTES;
  // 10xxxxxx continues a character; no character has more than four bytes.
  while (length > LOG_LINE_MAX_BYTES - 4 && ((bytes[length] ?? 0) & 0xc0) === 0x80) length -= 1;
  return length;
}

/** Where the last `lines` lines begin. */
async function tailOffset(files: OutFiles, lines: number): Promise<number> {
  const [begin, end] = [outBegin(files), outEnd(files)];
  if (lines === 0) return end;
  let left = lines;
  for (let at = end; at > begin;) {
    // Not across the border between the two files: a read ends there.
    const floor = at > files.base ? Math.max(files.base, begin) : begin;
    const from = Math.max(floor, at - TAIL_CHUNK_BYTES);
    const chunk = (await outRead(files, from, at - from)).subarray(0, at - from);
    for (let index = chunk.length - 1; index >= 0; index -= 1) {
      // The end of the last line begins no other one.
      if (chunk[index] !== 0x0a || from + index === end - 1) continue;
      left -= 1;
      if (left === 0) return from + index + 1;
    }
    at = from;
  }
  return begin;
}

interface Waker {
  /** Looks at one more folder; only once at each. */
  add(folder: string): void;
  /** Until something changed, for at most POLL_MS, or until the signal. */
  next(signal: AbortSignal): Promise<void>;
  close(): void;
}

function waker(clock: Clock): Waker {
  const watchers = new Map<string, FSWatcher | undefined>();
  let changed = false;
  let wake = (): void => undefined;
  return {
    add(folder) {
      if (watchers.has(folder)) return;
      const onChange = (): void => {
        changed = true;
        wake();
      };
      watchers.set(folder, watchFolder(folder, onChange));
    },
    async next(signal) {
      if (!changed && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const cancel = clock.after(POLL_MS, resolve);
          wake = () => {
            cancel();
            resolve();
          };
          signal.addEventListener('abort', wake, { once: true });
        });
        signal.removeEventListener('abort', wake);
      }
      changed = false;
    },
    close() {
      for (const watcher of watchers.values()) watcher?.close();
    },
  };
}

/** Only a hint: without it (no more watches, no such folder) polling goes on. */
function watchFolder(folder: string, onChange: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, onChange);
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
