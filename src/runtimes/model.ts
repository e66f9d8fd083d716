import type { Condition } from '../kernel/conditions.js';
import type { JsonObject } from '../kernel/json.js';
import type { Labels } from '../kernel/labels.js';

/** Types of runtimes that this server knows. `external` ones are driven by API clients through status patches. */
export const RUNTIME_TYPES = ['external'] as const;
export type RuntimeType = (typeof RUNTIME_TYPES)[number];

/** Who reports on a runtime and on what runs there: clients of the API, or this server itself. */
export function drivenByClients(type: string): boolean {
  return type === 'external';
}

export interface RuntimeState {
  readonly environment: string | null;
  readonly config: JsonObject;
  readonly labels: Labels;
  readonly generation: number;
  readonly observedGeneration: number;
  readonly conditions: readonly Condition[];
  readonly deletionRequestedAt: Date | null;
}
