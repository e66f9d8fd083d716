import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/**
 * What the transports count, and the registry behind `/metrics`. Labels come from closed lists only: a client must not be able to
 * make new time series.
 */
/** A counter without labels, for what happens a hundred thousand times a second. */
export interface PlainCounter {
  inc(): void;
}

export interface TransportMetrics {
  readonly registry: Registry;
  readonly operations: Counter<'transport' | 'kind' | 'outcome'>;
  readonly operationSeconds: Histogram<'kind'>;
  readonly closes: Counter<'code'>;
  readonly subscriptionsOpened: Counter;
  readonly executions: Counter;
  readonly eventsSent: PlainCounter;
  readonly commitToSend: Histogram;
  /** Failures as data, by kind: `VersionConflict` above all. */
  readonly failures: Counter<'kind'>;
}

export function createMetrics(): TransportMetrics {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    operations: new Counter({
      name: 'slipway_operations_total',
      help: 'GraphQL operations, by transport (http, sse, ws), kind and outcome (ok, or the code of the first error).',
      labelNames: ['transport', 'kind', 'outcome'],
      registers,
    }),
    operationSeconds: new Histogram({
      name: 'slipway_operation_seconds',
      help: 'Time of queries and mutations from the parsed request to the answer.',
      labelNames: ['kind'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    closes: new Counter({
      name: 'slipway_connection_closes_total',
      help: 'Ended WebSockets and event streams, by close code (other: one that is not ours).',
      labelNames: ['code'],
      registers,
    }),
    subscriptionsOpened: new Counter({
      name: 'slipway_subscriptions_opened_total',
      help: 'Subscriptions that began.',
      registers,
    }),
    executions: new Counter({
      name: 'slipway_event_executions_total',
      help: 'Executions of subscription events; sent events divided by this is how much is shared.',
      registers,
    }),
    eventsSent: plainCounter(registry, 'slipway_events_sent_total', 'Events handed to connections.'),
    commitToSend: new Histogram({
      name: 'slipway_commit_to_send_seconds',
      help: "From the time in the change row to its execution for a group of equal subscribers, who are sent it in the same turn. The row has its transaction's start, so a long transaction counts.",
      buckets: [0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.15, 0.5, 1.2, 5, 30, 300],
      registers,
    }),
    failures: new Counter({
      name: 'slipway_failures_total',
      help: 'Mutations that ended in a failure of their result union, by kind; VersionConflict is a lost race.',
      labelNames: ['kind'],
      registers,
    }),
  };
}

/** Counted in a variable, and told when asked for. */
function plainCounter(registry: Registry, name: string, help: string): PlainCounter {
  let untold = 0;
  registry.registerMetric(
    new Counter({
      name,
      help,
      registers: [],
      collect() {
        this.inc(untold);
        untold = 0;
      },
    }),
  );
  return {
    inc() {
      untold += 1;
    },
  };
}

/** A number that is read when asked for. */
export function gauge(registry: Registry, name: string, help: string, read: () => number): void {
  registry.registerMetric(
    new Gauge({
      name,
      help,
      registers: [],
      collect() {
        this.set(read());
      },
    }),
  );
}
