import type { SlipwayClient } from './client.js';
import { SlipwayRequestError } from './errors.js';
import {
  DeploymentDocument,
  WatchDeploymentsDocument,
  type DeploymentPartsFragment,
} from './generated/graphql.js';
import { meaningFor, type DeploymentGoal } from './phase-meaning.js';
import { systemClientClock, type ClientClock } from './timing.js';

export type DeploymentReference =
  { readonly id: string } | { readonly namespace?: string; readonly name: string };

export interface WaitOptions {
  /** RUNNING if left out. */
  readonly goal?: DeploymentGoal | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Each state of the deployment on the way, the last one too. */
  readonly onProgress?: ((deployment: DeploymentPartsFragment) => void) | undefined;
  readonly clock?: ClientClock | undefined;
}

export type WaitFailure =
  /** It failed, and nothing more happens by itself: `deployment.status` says why. */
  | 'FAILED'
  /** It is settled somewhere else, or somebody sent it there. */
  | 'ELSEWHERE'
  /** There is no such deployment, or it was deleted, or it may not be seen any more. */
  | 'GONE'
  | 'TIMEOUT'
  | 'ABORTED';

export class SlipwayWaitError extends Error {
  override readonly name = 'SlipwayWaitError';
  readonly code: WaitFailure;
  /** As it was last seen; null if it never was. */
  readonly deployment: DeploymentPartsFragment | null;

  constructor(code: WaitFailure, message: string, deployment: DeploymentPartsFragment | null) {
    super(message);
    this.code = code;
    this.deployment = deployment;
  }
}

/**
 * Resolves with the deployment once it is observed at its goal, for the generation that is wanted then: "running" means
 * that the newest specification runs. Rejects with SlipwayWaitError as soon as waiting longer cannot help. The connection
 * may come and go meanwhile.
 */
export async function waitForDeployment(
  client: SlipwayClient,
  reference: DeploymentReference,
  options: WaitOptions,
): Promise<DeploymentPartsFragment | null> {
  const goal = options.goal ?? 'RUNNING';
  const clock = options.clock ?? systemClientClock;
  const controller = new AbortController();
  const state: { last: DeploymentPartsFragment | null; stopped: 'TIMEOUT' | 'ABORTED' } = {
    last: null,
    stopped: 'ABORTED',
  };
  const abort = (): void => controller.abort();
  options.signal?.addEventListener('abort', abort, { once: true });
  if (options.signal?.aborted) abort();
  const cancelTimer = clock.after(options.timeoutMs, () => {
    state.stopped = 'TIMEOUT';
    abort();
  });
  try {
    return await follow(client, reference, goal, { signal: controller.signal, clock }, (deployment) => {
      state.last = deployment;
      options.onProgress?.(deployment);
    });
  } catch (error) {
    if (!controller.signal.aborted || error instanceof SlipwayWaitError) throw error;
    throw stoppedError(state.stopped, goal, options.timeoutMs, state.last);
  } finally {
    cancelTimer();
    options.signal?.removeEventListener('abort', abort);
    abort();
  }
}

async function follow(
  client: SlipwayClient,
  reference: DeploymentReference,
  goal: DeploymentGoal,
  context: { readonly signal: AbortSignal; readonly clock: ClientClock },
  seen: (deployment: DeploymentPartsFragment) => void,
): Promise<DeploymentPartsFragment | null> {
  const { signal } = context;
  const target = await lookUp(client, reference, context);
  if (!target) return gone(goal, null);
  seen(target);
  if (judge(goal, target)) return target;
  let last = target;
  // Whether the snapshot that is coming in has it.
  let present = false;
  // Names are unique among those not deleted; the id tells a successor of the same name.
  const filter = { namespace: { equals: target.namespace }, name: { equals: target.name } };
  const onResync = (): void => {
    present = false;
  };
  for await (const { watchDeployments: event } of client.subscribe(
    WatchDeploymentsDocument,
    { filter },
    { signal, onResync },
  )) {
    if (event.__typename === 'DeploymentAdded' || event.__typename === 'DeploymentChanged') {
      if (event.deployment.id !== target.id) continue;
      present = true;
      if (event.deployment.version > last.version) seen(event.deployment);
      last = event.deployment;
      if (judge(goal, last)) return last;
    } else if (event.__typename === 'DeploymentRemoved' && event.id === target.id) {
      return gone(goal, last);
    } else if (event.__typename === 'SnapshotEnd' && !present) {
      return gone(goal, last);
    }
  }
  throw new Error('The watch ended.');
}

/** The server may be away when the wait begins, as at any later moment. */
async function lookUp(
  client: SlipwayClient,
  reference: DeploymentReference,
  { signal, clock }: { readonly signal: AbortSignal; readonly clock: ClientClock },
): Promise<DeploymentPartsFragment | null> {
  const variables =
    'id' in reference
      ? { id: reference.id }
      : { namespace: reference.namespace ?? 'default', name: reference.name };
  while (true) {
    try {
      const { deployment } = await client.query(DeploymentDocument, variables, { signal });
      return deployment;
    } catch (error) {
      if (signal.aborted || !(error instanceof SlipwayRequestError) || !AWAY.has(error.code)) throw error;
      await pause(LOOK_UP_AGAIN_MS, signal, clock);
    }
  }
}

const AWAY: ReadonlySet<string> = new Set(['NETWORK', 'TIMEOUT', 'UNAVAILABLE', 'RATE_LIMITED']);
const LOOK_UP_AGAIN_MS = 1_000;

function pause(ms: number, signal: AbortSignal, clock: ClientClock): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, resolve);
    signal.addEventListener(
      'abort',
      () => {
        cancel();
        resolve();
      },
      { once: true },
    );
  });
}

function judge(
  goal: DeploymentGoal,
  deployment: DeploymentPartsFragment,
): DeploymentPartsFragment | undefined {
  const { phase, summary } = deployment.status;
  switch (meaningFor(goal, deployment)) {
    case 'reached':
      return deployment;
    case 'working':
      return undefined;
    case 'failed':
      throw new SlipwayWaitError('FAILED', `${deployment.name} is ${phase}: ${summary}`, deployment);
    case 'elsewhere':
      throw new SlipwayWaitError(
        'ELSEWHERE',
        `${deployment.name} is ${phase} and does not get to ${goal} by itself: ${summary}`,
        deployment,
      );
  }
}

function gone(goal: DeploymentGoal, last: DeploymentPartsFragment | null): DeploymentPartsFragment | null {
  if (goal === 'DELETED') return last;
  throw new SlipwayWaitError('GONE', 'There is no such deployment, or you may not see it.', last);
}

function stoppedError(
  code: 'TIMEOUT' | 'ABORTED',
  goal: DeploymentGoal,
  timeoutMs: number,
  last: DeploymentPartsFragment | null,
): SlipwayWaitError {
  const where = last ? ` It is ${last.status.phase}: ${last.status.summary}` : '';
  const what =
    code === 'TIMEOUT' ? `Not ${goal} within ${timeoutMs} ms.` : 'The wait was given up by its caller.';
  return new SlipwayWaitError(code, what + where, last);
}
