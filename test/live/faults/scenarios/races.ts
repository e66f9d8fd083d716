import { Agent, request } from 'node:http';

import { withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';
import type { Door } from '../stream-client.js';

const PATCH = `mutation ($input: PatchDeploymentStatusInput!) { patchDeploymentStatus(input: $input) { __typename
  ... on PatchDeploymentStatusPayload { deployment { version } } ... on DeploymentVersionConflict { currentVersion } } }`;
const OBJECTS_AT_ONCE = 4;

const ANSWER_MS = 60_000;
const agent = new Agent({ keepAlive: true });

interface Raced {
  readonly data?: {
    readonly patchDeploymentStatus?: {
      readonly __typename: string;
      readonly deployment?: { readonly version: number };
    };
  } | null;
  readonly errors?: unknown;
}

/** Many report on one version of one object, through all servers. */
export const races = scenario({
  name: 'races',
  shows: 'of racing patches of one version exactly one succeeds, and no error of the database surfaces',
  small: { objects: 8, racers: 10, rounds: 5, servers: 2 },
  full: { objects: 100, racers: 50, rounds: 200, servers: 2 },
  rounds: 'rounds',
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: size.objects }, async (run) => {
      await run.openMany(4);
      const waiting = [...run.fleet.objects];
      const work = async () => {
        for (let object = waiting.shift(); object !== undefined; object = waiting.shift()) {
          for (let round = 1; round <= size.rounds; round += 1) await race(run, object, round, size.racers);
          if (waiting.length % 10 === 0) context.say?.(`${waiting.length} objects are left`);
        }
      };
      await Promise.all(Array.from({ length: OBJECTS_AT_ONCE }, work));
      run.atLeast('acknowledged', size.objects * size.rounds, run.acknowledged);
      run.atLeast('conflicts', size.objects * size.rounds * (size.racers - 1), run.recorder.count('refused'));
      run.atMost('unknown', 0, run.recorder.count('unknown'));
    }),
});

async function race(run: Run, object: string, expected: number, racers: number): Promise<void> {
  const phase = expected % 2 === 1 ? 'REFRESH_FAILED' : 'RUNNING';
  const won = await Promise.all(
    Array.from({ length: racers }, async (_, racer) => {
      const op = `op-${object}-${expected}-${racer}`;
      const server = run.fleet.any(run.random);
      const who = `racer-${racer}`;
      run.recorder.add(who, server.name, { type: 'sent', op, object, expected });
      const input = { id: object, expectedVersion: expected, phase, reason: 'Raced', message: op };
      const answer = await patch(server.direct, input);
      const result = answer.data?.patchDeploymentStatus;
      if (result?.deployment) {
        run.recorder.add(who, server.name, {
          type: 'acknowledged',
          op,
          object,
          version: result.deployment.version,
        });
        return true;
      }
      const why = result?.__typename ?? JSON.stringify(answer.errors);
      if (why === 'DeploymentVersionConflict') {
        run.recorder.add(who, server.name, { type: 'refused', op, object, why });
      } else {
        run.recorder.add(who, server.name, { type: 'unknown', op, object, why });
        run.problem(`${op} was answered with ${why}`);
      }
      return false;
    }),
  );
  const winners = won.filter(Boolean).length;
  if (winners !== 1) run.problem(`${winners} of ${racers} won version ${expected + 1} of ${object}`);
}

/** No more than a request costs: a million of them are sent. */
function patch({ url }: Door, input: object): Promise<Raced> {
  const headers = { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const asked = request(
      `${url}/graphql`,
      { method: 'POST', agent, headers, timeout: ANSWER_MS },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (chunk: string) => (text += chunk));
        answer.on('error', reject);
        answer.on('end', () => resolve(JSON.parse(text) as Raced)); // GraphQL over HTTP, of the selection above
      },
    );
    asked.on('timeout', () => asked.destroy(new Error(`no answer in ${ANSWER_MS} ms`)));
    asked.on('error', reject);
    asked.end(JSON.stringify({ query: PATCH, variables: { input } }));
  });
}
