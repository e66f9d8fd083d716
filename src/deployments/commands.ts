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
  patchDeploymentStatus(caller: Caller, input: PatchDeploymentStatusInput): Promise<DeploymentOutcome>;
  applyDeployment(caller: Caller, input: ApplyDeploymentInput): Promise<Outcome<AppliedDeployment, Failure<DeploymentRow>>>;
  undeployDeployment(caller: Caller, input: UndeployDeploymentInput): Promise<DeploymentOutcome>;
  retryDeployment(caller: Caller, input: RetryDeploymentInput): Promise<DeploymentOutcome>;
  deleteDeployment(caller: Caller, input: DeleteDeploymentInput): Promise<DeploymentOutcome>;
}
