import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Adapter, AdapterTarget, LogLine, LogRequest } from '../../../src/adapters/contract.js';
import { outEnd, outFiles, outRotate } from '../../../src/adapters/process/out.js';
import { AdapterDriver, adapterTarget, never, resource } from '../../support/adapter-driver.js';
import { programHost, type ProgramHost } from '../../support/programs.js';
import { waitFor } from '../../support/wait-for.js';

const LOG_MAX_BYTES = 10_000;

let host: ProgramHost;
let adapter: Adapter;

beforeAll(() => {
  host = programHost();
  adapter = host.adapter({ logMaxBytes: LOG_MAX_BYTES });
});

afterAll(async () => {
  expect(await host.end()).toBe(0);
});

/** A deployment of which only the log is there. */
function written(text: string | Buffer, facts: Partial<AdapterTarget> = {}, name = 'job') {
  const target = adapterTarget('process', [resource({ name, spec: { command: ['sleep', '300'] } })], facts);
  const folder = join(host.dataDir, 'process/runs', target.deploymentId, name);
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'out');
  writeFileSync(file, text);
  return { target, folder, file };
}

async function read(target: AdapterTarget, request: Partial<LogRequest> = {}): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const all = { resource: null, tail: 10_000, follow: false, signal: never(), ...request };
  for await (const line of adapter.logs?.(target, all) ?? []) lines.push(line);
  return lines;
}

const texts = (lines: readonly LogLine[]): string[] => lines.map(({ text }) => text);

/** Follows from now on; `lines` grows by itself. */
function follow(target: AdapterTarget, request: Partial<LogRequest> = {}) {
  const controller = new AbortController();
  const lines: LogLine[] = [];
  const all = { resource: null, tail: 0, follow: true, signal: controller.signal, ...request };
  const ended = (async () => {
    for await (const line of adapter.logs?.(target, all) ?? []) lines.push(line);
  })();
  return {
    lines,
    ended,
    async end() {
      controller.abort();
      await ended;
    },
  };
}

describe('the tail of a log', () => {
  it.each([
    [0, []],
    [1, ['five']],
    [3, ['three', '', 'five']],
    [99, ['one', 'two', 'three', '', 'five']],
  ])('of %i lines is the last ones, oldest first', async (tail, expected) => {
    const { target } = written('one\ntwo\nthree\n\nfive\n');
    expect(texts(await read(target, { tail }))).toEqual(expected);
  });

  it('has a last line that is not finished, and crosses chunks and the two files', async () => {
    const { target, folder, file } = written('');
    const lines = Array.from({ length: 30_000 }, (_, at) => `line ${at} ${'x'.repeat(at % 7)}`);
    writeFileSync(file, `${lines.slice(0, 20_000).join('\n')}\n`);
    await outRotate(folder, 1000_000_000);
    expect(readdirSync(folder)).toEqual(['out']);
    await outRotate(folder, 200_000);
    appendFileSync(file, lines.slice(20_000).join('\n'));
    expect(texts(await read(target, { tail: 10_000 }))).toEqual(lines.slice(-10_000));
    expect(texts(await read(target, { tail: 3 }))).toEqual(lines.slice(-3));
    expect(await read(target, { tail: 1_000_000 })).toHaveLength(10_000);
  });

  it('cuts a line that is too long into pieces, at characters', async () => {
    const long = `${'é'.repeat(20_000)}end`;
    const { target } = written(`before\n${long}\nafter\n`);
    const lines = texts(await read(target));
    for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(16_384);
    expect(lines.slice(1, -1).join('')).toBe(long);
    expect([lines[0], lines.at(-1)]).toEqual(['before', 'after']);
  });

  it('shows what is no text as replacement characters, within the bound', async () => {
    const { target } = written(Buffer.concat([Buffer.alloc(30_000, 0xff), Buffer.from('\na\0b\r\n')]));
    const lines = texts(await read(target));
    for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(16_384);
    expect(lines.at(-1)).toBe('a\ufffdb');
  });

  it('blanks the values of secrets', async () => {
    const env = [
      { name: 'KEY', value: 'hunter2!', secret: true },
      { name: 'PEM', value: 'line one\nline two', secret: true },
      { name: 'PLAIN', value: 'visible', secret: false },
    ];
    const { target } = written('key hunter2! and visible\nline one\nline two\n', { env });
    expect(texts(await read(target))).toEqual(['key *** and visible', '***', '***']);
  });

  it('is that of one resource when it is named, and empty where nothing was written', async () => {
    const { target, folder } = written('of the job\n');
    mkdirSync(join(folder, '../other'));
    writeFileSync(join(folder, '../other/out'), 'of the other\n');
    expect(await read(target)).toEqual([
      { resource: 'job', text: 'of the job', at: null, stream: null },
      { resource: 'other', text: 'of the other', at: null, stream: null },
    ]);
    expect(texts(await read(target, { resource: 'other' }))).toEqual(['of the other']);
    expect(await read(target, { resource: '../../../..' })).toEqual([]);
    expect(await read(adapterTarget('process', []))).toEqual([]);
  });
});

describe('following a log', () => {
  it('gives every line once, in order, while a program writes and its file is rotated under it', async () => {
    const count = 3_000;
    const script = `i=0; while [ $i -lt ${count} ]; do i=$((i+1)); echo "line $i of the program that writes"; [ $((i % 40)) -eq 0 ] && sleep 0.02; done; sleep 300`;
    const job = resource({ name: 'job', spec: { command: ['sh', '-c', script] } });
    const driver = new AdapterDriver(adapter, adapterTarget('process', [job]));
    await driver.apply();
    const followed = follow(driver.target, { tail: 10_000 });
    const folder = join(host.dataDir, 'process/runs', driver.target.deploymentId, 'job');
    await waitFor(
      async () => {
        await driver.observe();
        return followed.lines.at(-1)?.text === `line ${count} of the program that writes`;
      },
      'the last line',
      25_000,
    );
    // It was rotated, and a line may have been written between the two steps of it; none comes twice or out of order.
    expect(readdirSync(folder).filter((name) => /^out\.\d+$/.test(name))).toHaveLength(1);
    const numbers = texts(followed.lines)
      .flatMap((text) => /^line (\d+) of the program/.exec(text)?.[1] ?? [])
      .map(Number);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    expect(numbers.length).toBeGreaterThan(count * 0.95);
    await followed.end();
    await driver.settle(() => driver.remove());
  });

  it('ends with its signal, at once, also when nothing is written', async () => {
    const { target } = written('one\n');
    const followed = follow(target, { tail: 5 });
    await waitFor(() => followed.lines.length === 1, 'the tail');
    await followed.end();
    expect(texts(followed.lines)).toEqual(['one']);
  });

  it('ends when the deployment is removed', async () => {
    const job = resource({ name: 'job', spec: { command: ['sh', '-c', 'echo hello; exec sleep 300'] } });
    const driver = new AdapterDriver(adapter, adapterTarget('process', [job]));
    await driver.deploy();
    const followed = follow(driver.target, { tail: 1 });
    await waitFor(() => followed.lines.length === 1, 'the tail');
    await driver.settle(() => driver.remove());
    await followed.ended;
    expect(texts(followed.lines)).toEqual(['hello']);
  });

  it('tells what waits for its end of line after a while, and a resource that comes later', async () => {
    const { target, file, folder } = written('hello\n');
    const followed = follow(target, { tail: 1 });
    await waitFor(() => followed.lines.length === 1, 'the tail');
    appendFileSync(file, 'Password: ');
    await waitFor(() => followed.lines.length === 2, 'the prompt');
    mkdirSync(join(folder, '../later'));
    writeFileSync(join(folder, '../later/out'), 'here too\n');
    await waitFor(() => followed.lines.length === 3, 'the other resource');
    expect(followed.lines.slice(1)).toMatchObject([
      { resource: 'job', text: 'Password: ' },
      { resource: 'later', text: 'here too' },
    ]);
    await followed.end();
  });

  it('says how much was lost when rotation overtook the reader', async () => {
    const { target, file, folder } = written('start\n');
    const controller = new AbortController();
    const reader = adapter
      .logs?.(target, { resource: null, tail: 1, follow: true, signal: controller.signal })
      [Symbol.asyncIterator]();
    expect((await reader?.next())?.value).toMatchObject({ text: 'start' });
    for (let round = 0; round < 3; round += 1) {
      appendFileSync(file, `${'y'.repeat(99)}\n`.repeat(200));
      await outRotate(folder, LOG_MAX_BYTES);
    }
    expect((await reader?.next())?.value).toMatchObject({
      text: '[slipway: 50000 bytes are no longer kept]',
    });
    controller.abort();
    await reader?.return?.();
  });
});

describe('outFiles', () => {
  it('counts every byte that was ever written, whenever the files are rotated meanwhile', async () => {
    const { folder, file } = written('');
    const text = `${'w'.repeat(999)}\n`.repeat(11);
    const known = { total: 0, over: false, lost: 0, looks: 0 };
    const look = async (): Promise<void> => {
      while (!known.over) {
        const { total } = known;
        if (outEnd(await outFiles(folder)) < total) known.lost += 1;
        known.looks += 1;
      }
    };
    const looking = [look(), look(), look(), look()];
    for (let round = 0; round < 300; round += 1) {
      appendFileSync(file, text);
      known.total += text.length;
      await outRotate(folder, LOG_MAX_BYTES);
    }
    known.over = true;
    await Promise.all(looking);
    expect(known.looks).toBeGreaterThan(100);
    expect(known.lost).toBe(0);
  });
});

describe('a rotation that a server died in', () => {
  it('counts when the file was emptied, and is forgotten when it was not', async () => {
    const emptied = written('new\n');
    writeFileSync(join(emptied.folder, 'next.4000'), `${'o'.repeat(999)}\n`);
    await outRotate(emptied.folder, LOG_MAX_BYTES);
    expect(texts(await read(emptied.target))).toEqual(['o'.repeat(999), 'new']);
    const full = written(`${'o'.repeat(999)}\nnew\n`);
    writeFileSync(join(full.folder, 'next.1000'), `${'o'.repeat(999)}\n`);
    await outRotate(full.folder, LOG_MAX_BYTES);
    expect(readdirSync(full.folder)).toEqual(['out']);
    expect(texts(await read(full.target))).toEqual(['o'.repeat(999), 'new']);
  });
});

describe('the size of a log', () => {
  it('is bounded by looking at it, whatever a program writes', async () => {
    const script = `while :; do echo ${'z'.repeat(200)}; done & sleep 0.5; kill $!; sleep 300`;
    const job = resource({ name: 'job', spec: { command: ['sh', '-c', script] } });
    const driver = new AdapterDriver(adapter, adapterTarget('process', [job]));
    await driver.deploy();
    const folder = join(host.dataDir, 'process/runs', driver.target.deploymentId, 'job');
    await driver.observe();
    await waitFor(async () => {
      await driver.observe();
      return readdirSync(folder).every(
        (name) => !name.startsWith('out') || statSync(join(folder, name)).size <= LOG_MAX_BYTES,
      );
    }, 'both files within the bound');
    expect(statSync(join(folder, 'out')).mode & 0o777).toBe(0o600);
    // The program goes on writing to the same file.
    const before = readFileSync(join(folder, 'out')).length;
    expect(before).toBeLessThanOrEqual(LOG_MAX_BYTES);
    await driver.settle(() => driver.remove());
  });

  it('holds for what is set aside while a program writes faster than it can be copied', async () => {
    const { folder, file } = written('');
    const noisy = join(folder, 'noisy');
    writeFileSync(noisy, 'z'.repeat(5_000));
    const program = spawn('sh', ['-c', `while :; do cat ${noisy}; done >> ${file}`]);
    try {
      const seen = new Set<string>();
      await waitFor(async () => {
        await outRotate(folder, LOG_MAX_BYTES);
        for (const name of readdirSync(folder).filter((one) => one.startsWith('out.'))) {
          expect(statSync(join(folder, name)).size).toBeLessThanOrEqual(LOG_MAX_BYTES);
          seen.add(name);
        }
        return seen.size >= 50;
      }, 'fifty rotations');
    } finally {
      program.kill('SIGKILL');
    }
  });
});
