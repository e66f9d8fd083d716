/** One status patch, as the driver's statement and as the mutation: the same facts, from the same walk of phases. */
import { condition } from '../support/fixture.js';

/** What one client owns of the deployments: it alone patches them, so no patch of a round conflicts. */
export interface OwnDeployment {
  readonly id: string;
  version: number;
}

export function ownDeployments(ids: readonly string[], client: number, clients: number): OwnDeployment[] {
  return ids.filter((_, index) => index % clients === client).map((id) => ({ id, version: 1 }));
}

// Seeded as RUNNING at version 1, so the parity of the version tells the phase.
function nextPhase(version: number): 'RUNNING' | 'REFRESH_FAILED' {
  return version % 2 === 1 ? 'REFRESH_FAILED' : 'RUNNING';
}

/** The server's own statement, with the least that an answer needs in RETURNING. */
export const PATCH_STATEMENT =
  'UPDATE deployment SET version = version + 1, changed_by = $4, change_reason = $5, change_message = $6,' +
  ' trace_id = $7, change_token = $8, phase = $9, conditions = $10, observed_generation = $11,' +
  ' observed_runtime = $12, environment_info = $13, error = $14, current_release_id = $15,' +
  ' target_release_id = $16, retry_requested = $17, deleted_at = $18' +
  ' WHERE id = $1 AND version = $2 AND ($3::text[] IS NULL OR namespace = ANY ($3))' +
  ' RETURNING version, phase';

export function patchValues({ id, version }: OwnDeployment, releaseId: string, token: string): unknown[] {
  const phase = nextPhase(version);
  const error =
    phase === 'RUNNING'
      ? null
      : JSON.stringify({ code: 'HealthCheckFailed', message: 'no answer', retryable: true });
  const conditions = [
    condition('Ready', 'HealthChecked', `report ${version}`),
    condition('Reachable', 'Connected'),
  ];
  const who = ['local', 'Reported', null, null, token];
  return [
    id,
    version,
    null,
    ...who,
    phase,
    JSON.stringify(conditions),
    1,
    null,
    null,
    error,
    releaseId,
    null,
    false,
    null,
  ];
}

const DOCUMENT = `mutation Patch($input: PatchDeploymentStatusInput!) {
  patchDeploymentStatus(input: $input) {
    __typename
    ... on PatchDeploymentStatusPayload { deployment { id version status { phase } } }
    ... on Failure { code message }
  }
}`;

export function patchBody({ id, version }: OwnDeployment): string {
  const phase = nextPhase(version);
  const input = {
    id,
    expectedVersion: version,
    observedGeneration: 1,
    phase,
    conditions: [{ type: 'Ready', status: 'TRUE', reason: 'HealthChecked', message: `report ${version}` }],
    ...(phase === 'RUNNING' ? {} : { error: { code: 'HealthCheckFailed', message: 'no answer' } }),
  };
  return JSON.stringify({ query: DOCUMENT, variables: { input } });
}
