import { parseArgs } from 'node:util';

export interface Options {
  readonly rounds: number;
  readonly seconds: number;
  /** Concurrent clients, one case each. Undefined: the benchmark's own. */
  readonly clients: readonly number[] | undefined;
  readonly subscribers: readonly number[];
  /** How many different documents they have, one case each. */
  readonly groups: readonly number[];
  readonly agents: number;
  /** Sizes of the fleets of `growth`, the smallest first. */
  readonly deployments: readonly number[];
  /** Rows of the log of a fleet of `growth`, at most. */
  readonly changes: number;
  /** How long `load` loads. */
  readonly minutes: number;
  /** Changes on their way at the same time, in `fanout`. */
  readonly inFlight: number;
  /** Changes a second in `fanout`, to measure how soon they come; undefined: as many as can be. */
  readonly pace: number | undefined;
  /** PostgreSQL for the external cases; undefined: a second embedded one, over TCP. */
  readonly databaseUrl: string | undefined;
  /** CPU profiles of the servers, into `bench/results/profiles/`. */
  readonly profile: boolean;
  /** Whether README.md is to show what was measured. */
  readonly publish: boolean;
}

const LARGEST = 10_000_000;

/** Throws a sentence for whoever typed it. */
export function parseOptions(args: readonly string[]): {
  readonly names: readonly string[];
  readonly options: Options;
} {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      clients: { type: 'string' },
      subscribers: { type: 'string', default: '1000,5000' },
      groups: { type: 'string', default: '5,100' },
      agents: { type: 'string', default: '2000' },
      deployments: { type: 'string', default: '1000,10000,100000,1000000' },
      changes: { type: 'string', default: '10000000' },
      minutes: { type: 'string', default: '10' },
      'in-flight': { type: 'string', default: '1' },
      pace: { type: 'string' },
      'database-url': { type: 'string' },
      profile: { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false },
    },
  });
  return {
    names: positionals,
    options: {
      rounds: amount('rounds', values.rounds),
      seconds: amount('seconds', values.seconds),
      clients: values.clients === undefined ? undefined : amounts('clients', values.clients),
      subscribers: amounts('subscribers', values.subscribers),
      groups: amounts('groups', values.groups),
      agents: amount('agents', values.agents),
      deployments: amounts('deployments', values.deployments),
      changes: amount('changes', values.changes),
      minutes: amount('minutes', values.minutes),
      inFlight: amount('in-flight', values['in-flight']),
      pace: values.pace === undefined ? undefined : amount('pace', values.pace),
      databaseUrl: values['database-url'],
      profile: values.profile,
      publish: values.publish,
    },
  };
}

function amounts(name: string, text: string): number[] {
  return text.split(',').map((part) => amount(name, part));
}

function amount(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= LARGEST) return value;
  throw new Error(`--${name} must be a whole number from 1 to ${LARGEST}, not ${JSON.stringify(text)}.`);
}
