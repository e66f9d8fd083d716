/** What tests over a real server need to have something change: a runtime, a release and deployments, by the public API. */
import {
  ApplyDeploymentDocument,
  CreateReleaseDocument,
  CreateRuntimeDocument,
  PatchDeploymentStatusDocument,
  type DeploymentPartsFragment,
  type PatchDeploymentStatusInput,
  type SlipwayClient,
} from '../../src/client/index.js';

let made = 0;

/** A deployment of its own runtime and release, in the phase PENDING. */
export async function makeDeployment(
  client: SlipwayClient,
  name = `app-${(made += 1)}`,
  namespace = 'default',
): Promise<DeploymentPartsFragment> {
  const runtime = { namespace, name: `${name}-runtime`, type: 'external' };
  const { createRuntime } = await client.mutate(CreateRuntimeDocument, { input: runtime });
  if (createRuntime.__typename !== 'CreateRuntimePayload') throw new Error(createRuntime.message);
  const release = { namespace, app: name, label: 'v1', resources: [{ name: 'web', serviceType: 'process' }] };
  const { createRelease } = await client.mutate(CreateReleaseDocument, { input: release });
  if (createRelease.__typename !== 'CreateReleasePayload') throw new Error(createRelease.message);
  const { applyDeployment } = await client.mutate(ApplyDeploymentDocument, {
    input: {
      namespace,
      name,
      runtime: { id: createRuntime.runtime.id },
      release: { id: createRelease.release.id },
    },
  });
  if (applyDeployment.__typename !== 'ApplyDeploymentPayload') throw new Error(applyDeployment.message);
  return applyDeployment.deployment;
}

/** Reports on the version that is given; any answer but success is thrown. */
export async function patch(
  client: SlipwayClient,
  { id, version }: Pick<DeploymentPartsFragment, 'id' | 'version'>,
  facts: Omit<PatchDeploymentStatusInput, 'id' | 'expectedVersion'>,
): Promise<DeploymentPartsFragment> {
  const { patchDeploymentStatus: result } = await client.mutate(PatchDeploymentStatusDocument, {
    input: { id, expectedVersion: version, ...facts },
  });
  if (result.__typename === 'PatchDeploymentStatusPayload') return result.deployment;
  throw new Error(`${result.__typename}: ${result.message}`);
}

/** From PENDING to RUNNING, as a controller would report it. */
export async function bringUp(
  client: SlipwayClient,
  pending: DeploymentPartsFragment,
): Promise<DeploymentPartsFragment> {
  let deployment = pending;
  for (const phase of ['INITIAL_SETUP', 'PROVISIONING', 'RUNNING'] as const) {
    deployment = await patch(client, deployment, { phase, observedGeneration: deployment.generation });
  }
  return deployment;
}
