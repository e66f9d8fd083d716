import { arch, platform } from 'node:os';

import { z } from 'zod';

import type { Clock } from '../../kernel/clock.js';
import type { Log } from '../../kernel/log.js';
import { textSchema } from '../../kernel/text.js';
import { answer, blocked, DONE } from '../answers.js';
import type { Adapter, AdapterAnswer, AdapterOutcome, AdapterTarget } from '../contract.js';
import { applyFrozen, applyLive } from './apply.js';
import { discover } from './discover.js';
import { Superseded, superseded } from './fence.js';
import type { Host } from './host.js';
import { layoutOf } from './layout.js';
import { readLogs } from './logs.js';
import { observe } from './observe.js';
import { procfs, type ProcessTable } from './process-table.js';
import { psTable } from './ps-table.js';
import { redactor } from './redact.js';
import { removeFrozen, removeLive } from './remove.js';
import { identity, identityOf } from './reports.js';
import { supports } from './spec.js';

export interface ProcessAdapterOptions {
  /** The server's data folder, absolute, its real path. Servers of one host that share work must share it too. */
  readonly dataDir: string;
  /** By which runtimes name this host. */
  readonly hostName: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The server's environment; programs get PATH, HOME, LANG and TZ of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** At most about twice as much is kept of each resource's output. Default 10 MiB. */
  readonly logMaxBytes?: number;
  /** How programs are found. Default: /proc on Linux, `ps` elsewhere. */
  readonly table?: ProcessTable;
}

const LOG_MAX_BYTES = 10 * 1024 * 1024;

/**
 * Real programs on this server's host. They are no children that die with it: a later server of the same data folder
 * finds them by a mark in their environment, takes them over as they are, and knows how they ended meanwhile. Of several
 * servers on one folder, the one with the newest lease acts. Nothing is ever restarted by looking at it.
 *
 * On Linux programs are found in /proc, on other Unix systems by `ps`, which sees less (ps-table.ts). On Windows every call is
 * `blocked` with that reason.
 */
export function processAdapter(options: ProcessAdapterOptions): Adapter {
  const { hostName, clock, log } = options;
  const host: Host = {
    name: hostName,
    layout: layoutOf(options.dataDir),
    table: options.table ?? (platform() === 'linux' ? procfs : psTable),
    clock,
    log,
    environment: options.environment,
    logMaxBytes: options.logMaxBytes ?? LOG_MAX_BYTES,
    facts: {
      provider: 'host',
      account: null,
      region: null,
      location: null,
      hostname: hostName,
      os: platform(),
      arch: arch(),
    },
  };
  return {
    type: 'process',
    configSchema: configSchema(hostName),
    host: (config) => (typeof config['host'] === 'string' ? config['host'] : null),
    supports,
    prepare: (target) =>
      guarded(host, target, () =>
        Promise.resolve(answer(DONE, { internal: identity(host, target), environmentInfo: host.facts })),
      ),
    apply: (target, scope, signal) =>
      guarded(host, target, () => {
        signal.throwIfAborted();
        return (scope === 'FROZEN' ? applyFrozen : applyLive)(host, target, signal);
      }),
    observe: (target, signal) =>
      guarded(host, target, () => {
        signal.throwIfAborted();
        return observe(host, target, signal);
      }),
    remove: (target, scope, signal) =>
      guarded(host, target, () => {
        signal.throwIfAborted();
        return (scope === 'FROZEN' ? removeFrozen : removeLive)(host, target, signal);
      }),
    discover: (runtime, known, signal) => discover(host, { runtime, known }, signal),
    logs: (target, request) => {
      const { layout } = host;
      const source = { layout, clock, deploymentId: identityOf(target), redact: redactor(target.env) };
      return readLogs(source, request);
    },
  };
}

function configSchema(hostName: string) {
  return z.strictObject({
    /** Whose server carries out the work; filled in with this one's name when the runtime is made. */
    host: textSchema(253, 1).default(hostName),
  });
}

/** What holds for every call: the system, the host, and a lease that is over. */
async function guarded(
  host: Host,
  target: AdapterTarget,
  call: () => Promise<AdapterAnswer>,
): Promise<AdapterAnswer> {
  const obstacle = unsupportedSystem() ?? otherHost(host, target);
  if (obstacle) return answer(obstacle);
  try {
    return await call();
  } catch (error) {
    // Whatever went wrong: when the work is another's by now, that is why, or will be.
    const late =
      error instanceof Superseded || (await superseded(host.layout, identityOf(target), target.fence));
    if (!late) throw error;
    const message = `a later lease than ${target.fence} acted on this host`;
    host.log.warn({ deploymentId: target.deploymentId, fence: String(target.fence) }, message);
    return answer(blocked('Superseded', message));
  }
}

function unsupportedSystem(): AdapterOutcome | undefined {
  if (platform() !== 'win32') return undefined;
  return blocked(
    'UnsupportedSystem',
    'runtimes of type `process` need a Unix system; this host runs Windows',
  );
}

/** What is recorded says where it is, whatever the configuration says by now. */
function otherHost(host: Host, { recorded, runtime }: AdapterTarget): AdapterOutcome | undefined {
  const wanted = runtime.config['host'];
  const where = recorded.runtimeNamespace ?? (typeof wanted === 'string' ? wanted : host.name);
  if (where === host.name) return undefined;
  return blocked('OtherHost', `what runs is on host \`${where}\`, and this is \`${host.name}\``);
}
