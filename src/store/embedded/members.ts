/**
 * The Slipway processes that share one data folder: a lock among them, and who still uses PostgreSQL.
 *
 * Each member owns one file whose name says which process made it, so a dead member is told by anyone and its file can
 * be removed by anyone: the name never comes back. That is what a single lock file cannot have (two waiters that both
 * find its holder dead would remove each other's lock). The lock is Lamport's bakery over these files. They are
 * rewritten in place with records of one size: a rename could hide an entry from a reader that is listing the folder.
 */
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from '../../kernel/start-error.js';
import { alive, identify, parseIdentity, pidOf, type ProcessIdentity } from './process-identity.js';

const POLL_MILLISECONDS = 15;
/** Longer than any start or stop: beyond it the holder hangs, and waiting longer would only hide that. */
const LOCK_WAIT_MILLISECONDS = 180_000;

type Phase = 'idle' | 'choosing' | 'waiting';
type MemberRecord = { readonly phase: Phase; readonly ticket: number; readonly using: boolean };
type Member = MemberRecord & { readonly name: string; readonly identity: ProcessIdentity };

const LETTER: Record<Phase, string> = { idle: 'i', choosing: 'c', waiting: 'w' };

function encode(record: MemberRecord): string {
  return `${LETTER[record.phase]}${String(record.ticket).padStart(12, '0')}${record.using ? 'u' : '-'}\n`;
}

function decode(text: string): MemberRecord {
  const match = /^([icw])(\d{12})([u-])\n$/.exec(text);
  // A member that was just created has written nothing yet: it is about to choose.
  if (match === null) return { phase: 'choosing', ticket: 0, using: false };
  const phase = match[1] === 'i' ? 'idle' : match[1] === 'c' ? 'choosing' : 'waiting';
  return { phase, ticket: Number(match[2]), using: match[3] === 'u' };
}

export interface Membership {
  /** Runs `work` while no other member of the folder is inside its own `locked`. Not reentrant. */
  locked<T>(work: () => Promise<T>): Promise<T>;
  /** Says whether this process counts on PostgreSQL. Call it inside `locked`. */
  setUsing(using: boolean): void;
  /** Whether another live process counts on PostgreSQL. Call it inside `locked`. */
  othersUsing(): boolean;
  /** Gives the place up; the membership is unusable afterwards. */
  leave(): void;
}

let membershipsOfThisProcess = 0;

export function joinMembers(folder: string): Membership {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const self = identify(process.pid);
  if (self === undefined) throw new Error('this process does not find itself in the process table');
  membershipsOfThisProcess += 1;
  const name = `${self}-${membershipsOfThisProcess}`;
  const file = openSync(join(folder, name), 'wx+', 0o600);
  let record: MemberRecord = { phase: 'idle', ticket: 0, using: false };
  const write = (changes: Partial<MemberRecord>): void => {
    record = { ...record, ...changes };
    writeSync(file, encode(record), 0, 'latin1');
  };
  write({});

  const others = (): Member[] => readMembers(folder).filter((member) => member.name !== name);

  const acquire = async (): Promise<void> => {
    write({ phase: 'choosing' });
    const ticket = 1 + Math.max(0, ...others().map((member) => member.ticket));
    write({ phase: 'waiting', ticket });
    const giveUpAt = performance.now() + LOCK_WAIT_MILLISECONDS;
    for (;;) {
      const ahead = others().find((member) => isAhead(member, ticket, name));
      if (ahead === undefined) return;
      if (performance.now() > giveUpAt) {
        write({ phase: 'idle', ticket: 0 });
        throw new StartError(
          `Process ${pidOf(ahead.identity)} has been starting or stopping PostgreSQL in ${folder} for more than ${LOCK_WAIT_MILLISECONDS / 1_000} s. End that process and start again.`,
        );
      }
      await delay(POLL_MILLISECONDS);
    }
  };

  let tail: Promise<unknown> = Promise.resolve();
  return {
    locked(work) {
      const run = async (): Promise<Awaited<ReturnType<typeof work>>> => {
        await acquire();
        try {
          return await work();
        } finally {
          write({ phase: 'idle', ticket: 0 });
        }
      };
      // The bakery orders members, not calls of one member: those queue here.
      const result = tail.then(run, run);
      tail = result.catch(() => undefined);
      return result;
    },
    setUsing: (using) => write({ using }),
    othersUsing: () => others().some((member) => member.using),
    leave() {
      closeSync(file);
      rmSync(join(folder, name), { force: true });
    },
  };
}

function isAhead(member: Member, ticket: number, name: string): boolean {
  switch (member.phase) {
    case 'idle':
      return false;
    case 'choosing':
      return true;
    case 'waiting':
      return member.ticket < ticket || (member.ticket === ticket && member.name < name);
  }
}

function readMembers(folder: string): Member[] {
  const members: Member[] = [];
  for (const name of readdirSync(folder)) {
    const identity = parseIdentity(name.split('-').slice(0, 2).join('-'));
    if (identity === undefined) continue;
    if (!alive(identity)) {
      rmSync(join(folder, name), { force: true });
      continue;
    }
    try {
      members.push({ name, identity, ...decode(readFileSync(join(folder, name), 'latin1')) });
    } catch (error) {
      // It left between the listing and the reading. `readFileSync` throws system errors only.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return members;
}
