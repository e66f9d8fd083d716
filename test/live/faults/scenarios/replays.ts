import { withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';
import { post } from '../writers.js';

const CREATE = `mutation ($input: CreateRuntimeInput!) { createRuntime(input: $input) { __typename
  ... on CreateRuntimePayload { runtime { id name version createdAt } } ... on Failure { code } } }`;

/** One key from several clients at once, to whichever server, while servers are killed, until each has an answer. */
export const replays = scenario({
  name: 'replays',
  shows: 'idempotency keys have one effect and equal answers, concurrently, over replicas and kills',
  small: { keys: 40, at: 6, servers: 2, kills: 2 },
  full: { keys: 3_000, at: 8, servers: 3, kills: 30 },
  rounds: 'keys',
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: 2 }, async (run) => {
      let next = 0;
      let answers = 0;
      /** One after the other. */
      let kills: Promise<void> = Promise.resolve();
      const killEvery = Math.ceil(size.keys / (size.kills + 1));
      const work = async () => {
        for (let key = (next += 1); key <= size.keys; key = next += 1) {
          const told = await Promise.all(Array.from({ length: 4 }, () => insist(run, key)));
          answers += told.length;
          if (new Set(told).size !== 1) {
            run.problem(
              `key ${key} was answered in ${new Set(told).size} ways: ${[...new Set(told)].join(' / ')}`,
            );
          }
          if (key % killEvery !== 0) continue;
          kills = kills.then(async () => {
            const server = run.fleet.any(run.random);
            run.fault('server killed', server.name);
            await server.signal('SIGKILL');
            await server.start();
          });
        }
      };
      await Promise.all(Array.from({ length: size.at }, work));
      await kills;
      const [made] = await run.fleet.sql<{ runtimes: number; changes: number }>(
        `select (select count(*)::int from runtime where name like 'place-%') as runtimes,
           (select count(*)::int from change where kind = 'RUNTIME' and object_id in (select id from runtime where name like 'place-%')) as changes`,
      );
      if (made?.runtimes !== size.keys || made.changes !== size.keys) {
        run.problem(`${size.keys} keys made ${made?.runtimes} runtimes with ${made?.changes} changes`);
      }
      run.atLeast('answers', size.keys * 4, answers);
      run.atLeast('faults', size.kills, run.recorder.count('fault'));
    }),
});

/** Until there is an answer that says what became of it. */
async function insist(run: Run, key: number): Promise<string> {
  let told = '';
  await run.until(async () => {
    const input = { name: `place-${key}`, type: 'external', idempotencyKey: `key-${key}` };
    const answer = await post(run.fleet.any(run.random).url, CREATE, { input }).catch(() => undefined);
    if (!answer?.data) return false;
    told = JSON.stringify(answer.data);
    return true;
  }, `key ${key} is answered`);
  return told;
}
