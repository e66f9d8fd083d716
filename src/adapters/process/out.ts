import { closeSync, fstatSync, ftruncateSync, openSync, readSync, renameSync, writeSync } from 'node:fs';
import { open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';

import { absent } from './absent.js';
import { OUT } from './layout.js';

/**
 * What a resource's programs wrote, standard output and standard error in the order of their writing, in at most two files:
 * `out`, which the programs append to, and `out.<offset>`, the part right before it. `offset` counts bytes since the first
 * one ever written, so that a reader keeps its place while the files change.
 */
export interface OutFiles {
  readonly folder: string;
  /** The offset at which `out` begins. */
  readonly base: number;
  readonly size: number;
  /** Of the part before. */
  readonly previousSize: number;
}

const PREVIOUS = /^out\.(\d{1,15})$/;
const NEXT = /^next\.(\d{1,15})$/;
const CHUNK_BYTES = 65_536;

/** As they are at one moment: looks again when they were rotated meanwhile. */
export async function outFiles(folder: string): Promise<OutFiles> {
  for (;;) {
    const base = await baseOf(folder);
    const size = (await stat(join(folder, OUT)).catch(absent))?.size ?? 0;
    const previous = base === 0 ? undefined : await stat(join(folder, `${OUT}.${base}`)).catch(absent);
    if ((await baseOf(folder)) === base) return { folder, base, size, previousSize: previous?.size ?? 0 };
  }
}

async function baseOf(folder: string): Promise<number> {
  const names = (await readdir(folder).catch(absent)) ?? [];
  return Math.max(0, ...numbersOf(names, PREVIOUS));
}

function numbersOf(names: readonly string[], pattern: RegExp): number[] {
  return names.flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number);
}

/** At most CHUNK_BYTES from `offset` on; fewer at the end of a file, none where nothing (more) is. */
export async function outRead(files: OutFiles, offset: number, max = CHUNK_BYTES): Promise<Buffer> {
  const before = offset < files.base;
  const file = join(files.folder, before ? `${OUT}.${files.base}` : OUT);
  const at = before ? files.previousSize - (files.base - offset) : offset - files.base;
  const handle = await open(file, 'r').catch(absent);
  if (!handle) return Buffer.alloc(0);
  try {
    const { buffer, bytesRead } = await handle.read(
      Buffer.alloc(Math.min(max, CHUNK_BYTES)),
      0,
      undefined,
      at,
    );
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** The first offset that is still there. */
export function outBegin(files: OutFiles): number {
  return files.base - files.previousSize;
}

export function outEnd(files: OutFiles): number {
  return files.base + files.size;
}

/**
 * Moves what was written aside once it is more than `maxBytes`, and keeps at most as many of it. Programs hold the file open and
 * append, so it is copied and emptied; what they write between the last read and the emptying is lost.
 */
export async function outRotate(folder: string, maxBytes: number): Promise<void> {
  await finishRotation(folder);
  const files = await outFiles(folder);
  if (files.size <= maxBytes) return;
  const base = rotateNow(folder, files.base, maxBytes);
  const older = (await readdir(folder)).filter((name) => PREVIOUS.test(name) && name !== `${OUT}.${base}`);
  for (const name of older) await unlink(join(folder, name)).catch(absent);
}

/**
 * In one turn, to keep the gap small; gives the new base. The copy gets its name when `out` is empty, so that no reader
 * sees the same bytes in both; one that comes in between sees fewer than it has read, and waits.
 */
function rotateNow(folder: string, base: number, maxBytes: number): number {
  const from = openSync(join(folder, OUT), 'r+');
  const copy = join(folder, 'rotating');
  const to = openSync(copy, 'w', 0o600);
  try {
    const size = () => fstatSync(from).size;
    let at = copyFrom({ from, to, maxBytes }, Math.max(0, size() - maxBytes));
    // Written while this copied: once more, with a tenth of room for what is written now. More than that is lost.
    if (size() > at) at = copyFrom({ from, to, maxBytes }, Math.max(0, size() - Math.floor(maxBytes * 0.9)));
    const next = join(folder, `next.${base + at}`);
    renameSync(copy, next);
    ftruncateSync(from, 0);
    renameSync(next, join(folder, `${OUT}.${base + at}`));
    return base + at;
  } finally {
    closeSync(from);
    closeSync(to);
  }
}

interface Copying {
  readonly from: number;
  readonly to: number;
  readonly maxBytes: number;
}

/** At most `maxBytes` from `begin` on, in place of what `to` held; gives where it ended. */
function copyFrom({ from, to, maxBytes }: Copying, begin: number): number {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  const end = begin + maxBytes;
  let at = begin;
  ftruncateSync(to, 0);
  for (let read = -1; read !== 0; at += read) {
    read = readSync(from, chunk, 0, Math.min(chunk.length, end - at), at);
    writeSync(to, chunk, 0, read, at - begin);
  }
  return at;
}

/** A server died in the middle: what it had copied counts if `out` was emptied, and is dropped if not. */
async function finishRotation(folder: string): Promise<void> {
  const names = (await readdir(folder).catch(absent)) ?? [];
  for (const next of numbersOf(names, NEXT)) {
    const { base, size } = await outFiles(folder);
    const emptied = size < next - base;
    const file = join(folder, `next.${next}`);
    await (emptied ? rename(file, join(folder, `${OUT}.${next}`)) : unlink(file)).catch(absent);
  }
}

const LAST_LINE_MAX_BYTES = 4096;

/** The last line that is not blank, cut at 4 KiB; empty when nothing was written. */
export async function lastLine(folder: string): Promise<string> {
  const files = await outFiles(folder);
  const from = Math.max(outBegin(files), outEnd(files) - LAST_LINE_MAX_BYTES);
  const texts: string[] = [];
  for (let at = from; at < outEnd(files);) {
    const chunk = await outRead(files, at, outEnd(files) - at);
    if (chunk.length === 0) break;
    texts.push(chunk.toString('utf8'));
    at += chunk.length;
  }
  const lines = texts
    .join('')
    .split('\n')
    .map((line) => line.trim());
  return lines.findLast((line) => line !== '') ?? '';
}
