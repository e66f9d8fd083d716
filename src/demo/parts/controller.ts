import {
  ApplyDeploymentDocument,
  CreateReleaseDocument,
  CreateRuntimeDocument,
  DeleteDeploymentDocument,
  PatchDeploymentStatusDocument,
  type DeploymentPartsFragment,
  type PatchDeploymentStatusInput,
  type SlipwayClient,
} from '../../client/index.js';

/** A mutation answered with one of its failures: for the demo that is the end. */
export class DemoFailure extends Error {
  override readonly name = 'DemoFailure';
}

interface Failure {
  readonly __typename: string;
  readonly message: string;
}

export function refusal(what: string, failure: Failure): DemoFailure {
  return new DemoFailure(`${what}: ${failure.__typename}: ${failure.message}`);
}

export interface DemoNames {
  readonly runtime: string;
  readonly app: string;
  readonly release: string;
  readonly deployment: string;
}

/** A runtime and a release may be there from an earlier run, and are the same then: that is no failure. */
export async function createRuntimeAndRelease(client: SlipwayClient, names: DemoNames): Promise<void> {
  const runtime = { name: names.runtime, type: 'external', environment: 'demo', labels: { purpose: 'demo' } };
  const { createRuntime } = await client.mutate(CreateRuntimeDocument, { input: runtime });
  if (createRuntime.__typename !== 'CreateRuntimePayload' && createRuntime.__typename !== 'AlreadyExists') {
    throw refusal('createRuntime', createRuntime);
  }
  const release = {
    app: names.app,
    label: names.release,
    description: 'The small program that ships with Slipway',
    resources: [{ name: 'web', serviceType: 'process', spec: { program: 'hello', healthPath: '/health' } }],
  };
  const { createRelease } = await client.mutate(CreateReleaseDocument, { input: release });
  if (createRelease.__typename !== 'CreateReleasePayload' && createRelease.__typename !== 'AlreadyExists') {
    throw refusal('createRelease', createRelease);
  }
}

export async function applyDeployment(
  client: SlipwayClient,
  names: DemoNames,
): Promise<DeploymentPartsFragment> {
  const { applyDeployment: result } = await client.mutate(ApplyDeploymentDocument, {
    input: {
      name: names.deployment,
      app: names.app,
      runtime: { name: names.runtime },
      release: { label: names.release },
      labels: { purpose: 'demo' },
      reason: 'Demo',
    },
  });
  if (result.__typename === 'ApplyDeploymentPayload') return result.deployment;
  throw refusal('applyDeployment', result);
}

export async function requestDeletion(client: SlipwayClient, id: string): Promise<DeploymentPartsFragment> {
  const { deleteDeployment: result } = await client.mutate(DeleteDeploymentDocument, {
    input: { id, reason: 'DemoEnds' },
  });
  if (result.__typename === 'DeleteDeploymentPayload') return result.deployment;
  throw refusal('deleteDeployment', result);
}

export type StatusPatch = Omit<PatchDeploymentStatusInput, 'id' | 'expectedVersion'>;

/** What a racing patch with an old version gets: the version to expect next, and the object, so that no read is needed. */
export interface Conflict {
  readonly currentVersion: number;
  readonly current: DeploymentPartsFragment;
}

/** Reports what was observed, on condition that the deployment is as `seen`. */
export async function report(
  client: SlipwayClient,
  seen: DeploymentPartsFragment,
  patch: StatusPatch,
): Promise<DeploymentPartsFragment | Conflict> {
  const { patchDeploymentStatus: result } = await client.mutate(PatchDeploymentStatusDocument, {
    input: { id: seen.id, expectedVersion: seen.version, observedGeneration: seen.generation, ...patch },
  });
  if (result.__typename === 'PatchDeploymentStatusPayload') return result.deployment;
  if (result.__typename === 'DeploymentVersionConflict') {
    return { currentVersion: result.currentVersion, current: result.current };
  }
  throw refusal('patchDeploymentStatus', result);
}

/** As `report`; whoever else changed it meanwhile is no obstacle: what was observed is still true. */
export async function reportAnyway(
  client: SlipwayClient,
  seen: DeploymentPartsFragment,
  patch: StatusPatch,
): Promise<DeploymentPartsFragment> {
  let latest = seen;
  for (let attempt = 0; attempt < REPORT_ATTEMPTS_MAX; attempt += 1) {
    const result = await report(client, latest, patch);
    if (!('currentVersion' in result)) return result;
    latest = result.current;
  }
  throw new DemoFailure(
    `The deployment changed ${REPORT_ATTEMPTS_MAX} times while one report was being made.`,
  );
}

const REPORT_ATTEMPTS_MAX = 10;
