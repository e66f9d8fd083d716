import type { DeploymentPartsFragment, SlipwayClient } from '../../client/index.js';
import type { ChildProgram } from './child-program.js';
import { reportAnyway, requestDeletion, type DemoNames } from './controller.js';
import type { DemoAgent } from './demo-agent.js';
import type { Observer } from './observer.js';
import type { Say } from './say.js';

const CLEANUP_MS = 5_000;

/** All that has to be undone, whatever happens. */
export interface Run {
  readonly client: SlipwayClient;
  readonly say: Say;
  readonly names: DemoNames & { readonly agent: string };
  observer: Observer | undefined;
  agent: DemoAgent | undefined;
  program: ChildProgram | undefined;
  deployment: DeploymentPartsFragment | undefined;
}

/** Ends the process, reports that, and with it the deployment. */
export async function takeDown(run: Run, deletable: DeploymentPartsFragment): Promise<void> {
  const deleting = await reportAnyway(run.client, deletable, { phase: 'DELETING', reason: 'ProcessStops' });
  await run.program?.stop();
  run.program = undefined;
  await reportAnyway(run.client, deleting, { phase: 'DELETED', reason: 'ProcessStopped', runtime: null });
}

/** As much as can be had in a few seconds; what is left is named. */
export async function cleanUp(run: Run): Promise<void> {
  await run.program?.stop();
  const { client, deployment, agent } = run;
  const work = async (): Promise<void> => {
    if (deployment) await takeDown(run, await requestDeletion(client, deployment.id));
    await agent?.deregister();
  };
  if (!deployment && !agent) return;
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), CLEANUP_MS);
  });
  try {
    await Promise.race([work(), timeout]);
    process.stderr.write('Its deployment and its agent are deleted again.\n');
  } catch (error) {
    const left = [deployment && `deployment ${deployment.name}`, agent && `agent ${run.names.agent}`]
      .filter(Boolean)
      .join(' and ');
    process.stderr.write(
      `Left behind: ${left} (${error instanceof Error ? error.message : String(error)}).\n`,
    );
  } finally {
    clearTimeout(timer);
  }
}
