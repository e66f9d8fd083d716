/** Rows put straight into a database. */
import type pg from 'pg';

import { newId } from '../../src/kernel/ids.js';

const RUNTIMES = 5;
const RELEASES = 10;

export interface Fixture {
  readonly deploymentIds: readonly string[];
}

/** Running deployments of some releases on some external runtimes, each with labels, variables and two conditions. */
export async function seedDeployments(client: pg.Client, count: number): Promise<Fixture> {
  const runtimeIds = Array.from({ length: RUNTIMES }, () => newId('RUNTIME'));
  await client.query(
    `INSERT INTO runtime (id, namespace, name, type, environment, config, labels, observed_generation)
     SELECT id, 'default', 'runtime-' || n, 'external', 'production', '{"region": "eu-west-1"}', '{"tier": "standard"}', 1
       FROM unnest($1::text[]) WITH ORDINALITY AS one(id, n)`,
    [runtimeIds],
  );
  const releaseIds = Array.from({ length: RELEASES }, () => newId('RELEASE'));
  await client.query(
    `INSERT INTO release (id, namespace, app, label, resources)
     SELECT id, 'default', 'shop', 'v' || n, $2 FROM unnest($1::text[]) WITH ORDINALITY AS one(id, n)`,
    [releaseIds, JSON.stringify([resource('web'), resource('worker')])],
  );
  const deploymentIds = Array.from({ length: count }, () => newId('DEPLOYMENT'));
  await client.query(
    `INSERT INTO deployment (id, namespace, name, app, runtime_id, labels, env, phase, conditions, observed_generation,
                             current_release_id)
     SELECT id, 'default', 'deployment-' || n, 'shop', ($2::text[])[1 + n % ${RUNTIMES}], $4, $5, 'RUNNING', $6, 1,
            ($3::text[])[1 + n % ${RELEASES}]
       FROM unnest($1::text[]) WITH ORDINALITY AS one(id, n)`,
    [
      deploymentIds,
      runtimeIds,
      releaseIds,
      JSON.stringify({ team: 'web', tier: 'standard' }),
      JSON.stringify([{ name: 'LEVEL', value: 'info' }]),
      JSON.stringify([condition('Ready', 'HealthChecked'), condition('Reachable', 'Connected')]),
    ],
  );
  return { deploymentIds };
}

function resource(name: string): object {
  return { name, serviceType: 'process', spec: {}, requires: [], lifecycle: 'LIVE', reschedule: 'NEVER' };
}

export function condition(type: string, reason: string, message = 'all is well'): object {
  const lastTransitionAt = '2026-01-01T00:00:00.000Z';
  return { type, status: 'TRUE', reason, message, lastTransitionAt, observedGeneration: 1 };
}

export interface BenchAgent {
  readonly id: string;
  readonly session: string;
}

export async function seedAgents(client: pg.Client, count: number): Promise<BenchAgent[]> {
  const agents = Array.from({ length: count }, (_, n) => ({ id: newId('AGENT'), session: `ses_${n}` }));
  const ids = agents.map(({ id }) => id);
  await client.query(
    `INSERT INTO agent (id, name, topic, service_types, labels)
     SELECT id, 'agent-' || n, 'agent-' || n, '{process}', '{}' FROM unnest($1::text[]) WITH ORDINALITY AS one(id, n)`,
    [ids],
  );
  await client.query(
    `INSERT INTO agent_internal (agent_id, session) SELECT * FROM unnest($1::text[], $2::text[])
     ON CONFLICT (agent_id) DO UPDATE SET session = excluded.session`,
    [ids, agents.map(({ session }) => session)],
  );
  return agents;
}
