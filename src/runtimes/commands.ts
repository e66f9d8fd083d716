import type { Caller } from '../access/caller.js';
import type { Failure, Outcome } from '../kernel/failure.js';
import type { RuntimeRow } from '../store/rows.js';
import type {
  CreateRuntimeInput,
  DeleteRuntimeInput,
  PatchRuntimeStatusInput,
  UpdateRuntimeInput,
} from './input.js';

export type RuntimeOutcome = Outcome<RuntimeRow, Failure<RuntimeRow>>;

export interface RuntimeCommands {
  createRuntime(caller: Caller, input: CreateRuntimeInput): Promise<RuntimeOutcome>;
  updateRuntime(caller: Caller, input: UpdateRuntimeInput): Promise<RuntimeOutcome>;
  deleteRuntime(caller: Caller, input: DeleteRuntimeInput): Promise<RuntimeOutcome>;
  patchRuntimeStatus(caller: Caller, input: PatchRuntimeStatusInput): Promise<RuntimeOutcome>;
}
