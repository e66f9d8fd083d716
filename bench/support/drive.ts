/** Closed-loop clients: each begins its next operation when the last one is answered. */
import type { Measurement } from './contender.js';
import { cpuMsOf, ownCoreShare } from './processes.js';

export interface Drive {
  /** One operation of client number `client`. Must throw unless it was answered as it should be. */
  step(client: number): Promise<void>;
  readonly clients: number;
  readonly seconds: number;
  /** The process whose CPU time is counted. */
  readonly pid: number;
}

export async function drive({ step, clients, seconds, pid }: Drive): Promise<Measurement> {
  const took: number[] = [];
  const cpuBefore = cpuMsOf([pid]);
  const shareOf = ownCoreShare();
  const start = performance.now();
  const end = start + seconds * 1_000;
  const run = async (client: number) => {
    for (let at = performance.now(); at < end;) {
      await step(client);
      const now = performance.now();
      took.push(now - at);
      at = now;
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, client) => run(client)));
  const elapsed = performance.now() - start;
  const generatorShare = shareOf();
  const cpuAfter = cpuMsOf([pid]);
  took.sort((a, b) => a - b);
  const quantile = (part: number) => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0;
  return {
    perSecond: (took.length * 1_000) / elapsed,
    cpuMs: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / took.length,
    latency: { p50: quantile(0.5), p99: quantile(0.99) },
    generatorShare: pid === process.pid ? null : generatorShare,
  };
}
