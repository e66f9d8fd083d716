import { filterSchema, type Filter, type Predicate } from '../kernel/filter.js';
import { ROLLOUT_OPERATION_NAMES, ROLLOUT_OUTCOME_NAMES, ROLLOUT_PHASE_NAMES } from './model.js';

/** Filter fields of rollouts, by the names of the row. Those that can change stand in every change's `before`. */
export type RolloutFilterField =
  'namespace' | 'deploymentId' | 'operation' | 'phase' | 'outcome' | 'toReleaseId';
export type RolloutFilter = Filter<RolloutFilterField>;
export type RolloutPredicate = Predicate<RolloutFilterField>;

export const rolloutFilterSchema = filterSchema<RolloutFilterField>({
  labels: false,
  fields: {
    namespace: { kind: 'text' },
    deploymentId: { kind: 'exact' },
    operation: { kind: 'exact', values: ROLLOUT_OPERATION_NAMES },
    phase: { kind: 'exact', values: ROLLOUT_PHASE_NAMES },
    outcome: { kind: 'exact', values: ROLLOUT_OUTCOME_NAMES },
    toReleaseId: { kind: 'exact' },
  },
});
