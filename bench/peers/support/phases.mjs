/** What a subscription of the peers sends; a change is made by a POST to `/change`, and touches no database. */
import { createPubSub } from 'graphql-yoga';

export const TOPIC = 'phases';
export const CHANGE_PATH = '/change';

let version = 1;

/** As large as an event of the server, from the same walk of phases. */
export function nextPhaseChange() {
  version += 1;
  const [from, to] = version % 2 === 0 ? ['RUNNING', 'REFRESH_FAILED'] : ['REFRESH_FAILED', 'RUNNING'];
  const id = 'dep_01h455vb4pex5vsknk084sn02q';
  return {
    cursor: `c1_${'x'.repeat(61)}`,
    at: new Date().toISOString(),
    from,
    to,
    version,
    reason: 'Reported',
    message: null,
    actor: 'local',
    deployment: {
      id,
      name: 'deployment-1',
      namespace: 'default',
      app: 'shop',
      version,
      labels: { team: 'web', tier: 'standard' },
      status: { phase: to, summary: 'Running.' },
    },
  };
}

/** A publish and subscribe in memory, as Yoga's guide has it; its event is the whole answer of the field. */
export function phasePubSub() {
  const pubSub = createPubSub();
  return {
    subscribe: () => pubSub.subscribe(TOPIC),
    publish: () => pubSub.publish(TOPIC, nextPhaseChange()),
  };
}

/** A listener of node:http that makes changes, and leaves the rest to `others`. */
export function withChanges(publish, others) {
  return (request, response) => {
    if (request.url !== CHANGE_PATH) {
      others(request, response);
      return;
    }
    request.resume();
    publish();
    response.writeHead(200, { 'content-length': 2 });
    response.end('{}');
  };
}
