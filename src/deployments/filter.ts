import { filterSchema, type Filter, type Predicate } from '../kernel/filter.js';
import { DEPLOYMENT_PHASES } from './lifecycle.js';
import { DEPLOYMENT_ORIGINS, DESIRED_STATES } from './model.js';

/** Filter fields of deployments, by the names of the row. Those that can change stand in every change's `before`. */
export type DeploymentFilterField =
  'namespace' | 'name' | 'app' | 'phase' | 'desiredState' | 'origin' | 'runtimeId';
export type DeploymentFilter = Filter<DeploymentFilterField>;
export type DeploymentPredicate = Predicate<DeploymentFilterField>;

export const deploymentFilterSchema = filterSchema<DeploymentFilterField>({
  labels: true,
  fields: {
    namespace: { kind: 'text' },
    name: { kind: 'text' },
    app: { kind: 'text' },
    phase: { kind: 'exact', values: DEPLOYMENT_PHASES },
    desiredState: { kind: 'exact', values: DESIRED_STATES },
    origin: { kind: 'exact', values: DEPLOYMENT_ORIGINS },
    runtimeId: { kind: 'exact' },
  },
});
