/** From the command to the first answer, with the PostgreSQL that comes along: in a new folder, and in one that was used. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startServerProcess } from '../../test/support/server.js';
import type { Closing } from '../support/closing.js';
import type { Options } from '../support/options.js';
import { figure, type Report } from '../support/report.js';

export async function benchStart(options: Options, closing: Closing): Promise<Report> {
  const cold: number[] = [];
  const warm: number[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const dataDir = mkdtempSync(join(tmpdir(), 'slipway-start-'));
    closing.add(() => rmSync(dataDir, { recursive: true, force: true }));
    cold.push(await startOnce(dataDir));
    warm.push(await startOnce(dataDir));
  }
  const row = (title: string, taken: number[]) => {
    taken.sort((a, b) => a - b);
    const [least, median, most] = [taken[0], taken[Math.floor(taken.length / 2)], taken.at(-1)];
    return [title, ...[median, least, most].map((ms) => figure(ms ?? null))];
  };
  return {
    name: 'start',
    options,
    groups: [],
    tables: [
      {
        title: 'From the command to the first answer',
        head: ['', 'ms, median', 'least', 'most'],
        rows: [row('new data folder', cold), row('used data folder', warm)],
      },
    ],
    notes: ['The code is built already; the first start of a clone also builds it.'],
  };
}

/** Milliseconds. */
async function startOnce(dataDir: string): Promise<number> {
  const start = performance.now();
  const server = await startServerProcess({ env: { SLIPWAY_DATA_DIR: dataDir } });
  try {
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query: '{ deployments(first: 1) { nodes { id } } }' }),
    });
    const text = await response.text();
    const took = performance.now() - start;
    if (!text.includes('"nodes"')) throw new Error(`no answer: ${text}`);
    return took;
  } finally {
    await server.stop();
  }
}
