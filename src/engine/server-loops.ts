import { systemGrant } from '../access/authorise.js';
import { stampOf } from '../access/stamp.js';
import { agentSweep } from '../agents/index.js';
import { createRetention } from '../changes/retention.js';
import type { Config } from '../config/config.js';
import { deploymentsPurgeUnchecked } from '../deployments/index.js';
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { rolloutsInterruptUnchecked, rolloutsPurgeUnchecked } from '../rollouts/index.js';
import { runtimesPurgeUnchecked, runtimesSweepUnchecked } from '../runtimes/index.js';
import type { Database } from '../store/database.js';
import { idempotencyPurgeUnchecked } from '../store/idempotency.js';
import { loop, MORE, type Loop } from './sweeps.js';

const DAY_MS = 24 * 60 * 60_000;
/** How long the rows of deleted objects stay, for those who ask for them. */
const DELETED_KEPT_MS = 7 * DAY_MS;
/** Rows of one statement: small enough never to hold up a writer. */
const BATCH = 500;
/** Statements of one run: a server that stops waits for no more. */
const BATCHES_MAX = 20;

/** What the server does by itself. Every replica runs all of it: doing it twice at once does the same as once. */
export function startLoops(
  config: Pick<Config, 'agents' | 'retention'>,
  parts: {
    readonly database: Database;
    readonly clock: Clock;
    readonly log: Log;
    /** Writes down which tokens were used since the last time. */
    readonly flushTokenUses: () => Promise<void>;
  },
): Loop[] {
  const { database, clock, log } = parts;
  const deps = { clock, log, random: Math.random };
  const { heartbeatTimeoutSeconds, sweepSeconds } = config.agents;
  const ago = (ms: number) => new Date(clock.now().getTime() - ms);
  const stamp = stampOf(systemGrant('system:sweep', 'runtimes'), 'RuntimeRemoved');
  const silent = stampOf(systemGrant('system:sweep', 'rollouts'), 'RolloutInterrupted');
  const purged = stampOf(systemGrant('system:sweep', 'purge'), 'DeploymentPurged');
  const purge = async (...takes: readonly (() => Promise<number>)[]) => {
    let more = false;
    for (const take of takes) {
      let batches = 0;
      while ((await take()) === BATCH) {
        batches += 1;
        if (batches < BATCHES_MAX) continue;
        more = true;
        break;
      }
    }
    return more ? MORE : undefined;
  };
  const retention = createRetention({
    database,
    payloadDays: config.retention.changePayloadHours / 24,
    rowDays: config.retention.changeDays,
  });
  return [
    loop('retention', 600, async () => ((await retention.run()).more ? MORE : undefined), deps),
    loop('token-uses', 15, parts.flushTokenUses, deps),
    loop('agents', sweepSeconds, agentSweep({ database, log, heartbeatTimeoutSeconds }), deps),
    // Only what a server that stopped between two steps left behind; otherwise a runtime goes with its last deployment.
    loop(
      'runtimes',
      60,
      () =>
        purge(async () => (await runtimesSweepUnchecked(database.writer, clock.now(), BATCH, stamp)).length),
      deps,
    ),
    // A lock that ran out is free without this; it tells those who watch, and keeps the history true.
    loop('rollouts', 60, () => purge(() => rolloutsInterruptUnchecked(database.writer, BATCH, silent)), deps),
    loop(
      'purge',
      3_600,
      () =>
        purge(
          () => rolloutsPurgeUnchecked(database, ago(DELETED_KEPT_MS), BATCH, purged),
          () => deploymentsPurgeUnchecked(database.pool, ago(DELETED_KEPT_MS), BATCH),
          () => runtimesPurgeUnchecked(database.pool, ago(DELETED_KEPT_MS), BATCH),
          () => idempotencyPurgeUnchecked(database.pool, BATCH),
        ),
      deps,
    ),
  ];
}
