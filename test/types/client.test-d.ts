/** What callers of the client must and must not be able to write. Compiled, never run. */
import {
  DeploymentDocument,
  DeploymentsDocument,
  PatchDeploymentStatusDocument,
  WatchDeploymentsDocument,
  watchObjects,
  type DeploymentPhase,
  type SlipwayClient,
} from '../../src/client/index.js';

export async function typed(client: SlipwayClient): Promise<void> {
  // Variables may be left out only where none is required.
  await client.query(DeploymentsDocument);
  await client.query(DeploymentsDocument, { first: 1 }, { timeoutMs: 1 });
  // @ts-expect-error the input of a mutation is required
  await client.mutate(PatchDeploymentStatusDocument);
  // @ts-expect-error the version that was read is required
  await client.mutate(PatchDeploymentStatusDocument, { input: { id: 'dep_1' } });
  const wrong = { id: 'dep_1', expectedVersion: 1, phase: 'GONE' } as const;
  // @ts-expect-error there is no such phase
  await client.mutate(PatchDeploymentStatusDocument, { input: wrong });
  // @ts-expect-error there is no such variable
  await client.query(DeploymentDocument, { identity: 'dep_1' });

  const { deployment } = await client.query(DeploymentDocument, { id: 'dep_1' });
  // @ts-expect-error it may be null
  deployment.name;
  const phase: DeploymentPhase | undefined = deployment?.status.phase;
  void phase;

  const { patchDeploymentStatus: result } = await client.mutate(PatchDeploymentStatusDocument, {
    input: { id: 'dep_1', expectedVersion: 1 },
  });
  // @ts-expect-error a failure has no deployment
  result.deployment;
  if (result.__typename === 'DeploymentVersionConflict') {
    result.current.status.phase satisfies DeploymentPhase;
  }

  for await (const { watchDeployments: event } of client.subscribe(WatchDeploymentsDocument)) {
    // @ts-expect-error only some events carry a deployment
    event.deployment;
    if (event.__typename === 'DeploymentAdded') event.deployment.name satisfies string;
  }

  const watch = watchObjects(client, WatchDeploymentsDocument, {});
  for (const object of watch.objects.values()) {
    object.status.phase satisfies DeploymentPhase;
    // @ts-expect-error the document does not select it
    object.protocolVersion;
  }
}
