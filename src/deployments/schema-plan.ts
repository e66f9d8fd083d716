import type { EnumRef, ObjectRef } from '@pothos/core';

import type { Graph } from '../graph/graph.js';
import type { Types } from '../graph/graph-types.js';
import type { DeploymentPhase } from './lifecycle.js';
import type { DeploymentPlan, PlannedChange } from './plan.js';

export type PlanRef = ObjectRef<Types, DeploymentPlan>;

/** What mutations with `dryRun` say beside the object as it would be. */
export function addPlanType({ builder }: Graph, phase: EnumRef<Types, DeploymentPhase>): PlanRef {
  const change = builder.objectRef<PlannedChange>('PlannedChange').implement({
    description: 'One difference between what is wanted now and what would be.',
    fields: (t) => ({
      field: t.exposeString('field', {
        description: '`labels`, `env`, `runtimeConfig`, `desiredState`, `generation` or `releaseId`.',
      }),
      from: t.exposeString('from', {
        nullable: true,
        description: 'The value now, as JSON text; null if there is none.',
      }),
      to: t.exposeString('to', {
        nullable: true,
        description: 'The value then, as JSON text; null if there would be none.',
      }),
    }),
  });
  return builder.objectRef<DeploymentPlan>('DeploymentPlan').implement({
    description: 'What a mutation would do. Nothing was written.',
    fields: (t) => ({
      changes: t.field({
        type: [change],
        description: 'What would be wanted otherwise than now; empty if nothing.',
        resolve: (plan) => [...plan.changes],
      }),
      phases: t.field({
        type: [phase],
        description:
          'The phases that it would pass if all goes well, from the one that it would be in at once; empty if it would stay where it is.',
        resolve: (plan) => [...plan.phases],
      }),
    }),
  });
}

/** The field of a payload. */
export const PLAN_DESCRIPTION =
  'With `dryRun`, what would be done: the rest of this payload is as it would be, and what belongs to it as it is. Null otherwise.';
