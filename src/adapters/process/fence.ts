import { existsSync } from 'node:fs';
import { mkdir, readdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { below, type Layout } from './layout.js';
import { absent } from './absent.js';

/** A newer lease acted on this host: nothing was changed any more. */
export class Superseded extends Error {
  override readonly name = 'Superseded';
}

/**
 * One lease's right to act on this host. The number is the name of a file, and the highest is the one that counts: two
 * servers that write at once cannot set it back. Whoever raises it deletes the lower ones, so that "my file is still
 * there" is the whole question, for us and for the shell script that starts a program.
 */
export interface Fence {
  readonly number: bigint;
  readonly file: string;
  /**
   * Throws Superseded. Synchronous: called right before a signal, a start or a deletion, in the same turn. A server that is
   * frozen between the two still acts late; programs that it starts then look at the file themselves, and do not run.
   */
  check(): void;
}

const NUMBER = /^\d{1,19}$/;

/** Throws Superseded when a higher number was here. */
export async function raiseFence(layout: Layout, deploymentId: string, number: bigint): Promise<Fence> {
  const folder = below(layout.fences, deploymentId);
  const file = join(folder, String(number));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // Before the look at the others: of two that do so at once, at least the lower one sees the higher.
  await writeFile(file, '', { mode: 0o600 });
  const others = (await numbersIn(folder)).filter((other) => other !== number);
  if (others.some((other) => other > number)) {
    await unlink(file).catch(absent);
    throw new Superseded(`a later lease than ${number} acted on this host`);
  }
  for (const other of others) await unlink(join(folder, String(other))).catch(absent);
  return {
    number,
    file,
    check() {
      if (!existsSync(file)) throw new Superseded(`a later lease than ${number} acted on this host`);
    },
  };
}

/** Whether a later lease acted; changes nothing. */
export async function superseded(layout: Layout, deploymentId: string, number: bigint): Promise<boolean> {
  return (await numbersIn(below(layout.fences, deploymentId))).some((other) => other > number);
}

async function numbersIn(folder: string): Promise<bigint[]> {
  const names = (await readdir(folder).catch(absent)) ?? [];
  return names.filter((name) => NUMBER.test(name)).map(BigInt);
}
