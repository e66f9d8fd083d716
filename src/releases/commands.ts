import type { Caller } from '../access/caller.js';
import type { Failure, Outcome } from '../kernel/failure.js';
import type { ReleaseRow } from '../store/rows.js';
import type { CreateReleaseInput } from './input.js';

export interface ReleaseCommands {
  createRelease(caller: Caller, input: CreateReleaseInput): Promise<Outcome<ReleaseRow, Failure<never>>>;
}
