/** Several load generators as one contender: their rates added up. */
import type { Contender, Measurement } from '../support/contender.js';

export function together(name: string, parts: readonly Contender[]): Contender {
  return {
    name,
    async round(seconds) {
      return sum(await Promise.all(parts.map((part) => part.round(seconds))));
    },
    async stop() {
      for (const part of parts) await part.stop();
    },
  };
}

/** CPU is weighted by what each did; latencies and the generator are those of the worst. */
function sum(measurements: readonly Measurement[]): Measurement {
  const perSecond = measurements.reduce((total, part) => total + part.perSecond, 0);
  const cpu = measurements.map((part) => (part.cpuMs === null ? null : part.cpuMs * part.perSecond));
  const cpuPerSecond = cpu.reduce<number | null>(
    (total, part) => (total === null || part === null ? null : total + part),
    0,
  );
  const worst = (of: (part: Measurement) => number | null | undefined) =>
    Math.max(...measurements.map((part) => of(part) ?? 0));
  return {
    perSecond,
    cpuMs: cpuPerSecond === null ? null : cpuPerSecond / perSecond,
    latency: { p50: worst(({ latency }) => latency?.p50), p99: worst(({ latency }) => latency?.p99) },
    generatorShare: worst(({ generatorShare }) => generatorShare),
  };
}
