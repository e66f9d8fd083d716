import type { Caller } from '../access/caller.js';
import type { Failure, Outcome } from '../kernel/failure.js';
import type { DeploymentRow } from '../store/rows.js';
import type {
  ApplyDeploymentInput,
  DeleteDeploymentInput,
  PatchDeploymentStatusInput,
  RetryDeploymentInput,
  UndeployDeploymentInput,
} from './input.js';

export type DeploymentOutcome = Outcome<DeploymentRow, Failure<DeploymentRow>>;

export type ApplyResult = 'CREATED' | 'UPDATED' | 'UNCHANGED';
export interface AppliedDeployment {
  readonly deployment: DeploymentRow;
  readonly result: ApplyResult;
}

export interface DeploymentCommands {
  patchStatus(caller: Caller, input: PatchDeploymentStatusInput): Promise<DeploymentOutcome>;
  apply(caller: Caller, input: ApplyDeploymentInput): Promise<Outcome<AppliedDeployment, Failure<DeploymentRow>>>;
  undeploy(caller: Caller, input: UndeployDeploymentInput): Promise<DeploymentOutcome>;
  retry(caller: Caller, input: RetryDeploymentInput): Promise<DeploymentOutcome>;
  delete(caller: Caller, input: DeleteDeploymentInput): Promise<DeploymentOutcome>;
}
