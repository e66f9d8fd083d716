import type { IdempotentRequest } from '../store/idempotency.js';
import type { Caller } from './caller.js';

/** A request that may be repeated: keys belong to the principal, and a replay shows what the caller may see now. */
export function idempotentRequest(
  { actor }: Caller,
  operation: string,
  key: string,
  input: unknown,
): IdempotentRequest {
  return { principal: actor.id, namespaces: actor.namespaces, key, operation, input };
}
