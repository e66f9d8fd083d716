import { MESSAGE_MAX_BYTES } from '../kernel/conditions.js';
import { cutToBytes } from '../kernel/text.js';
import type { Stamp } from '../store/versioned.js';
import type { Grant } from './grant.js';

/** Who writes and why, for the change row of a write made with this grant. */
export function stampOf(grant: Grant, reason: string | null, message?: string): Stamp {
  return {
    actor: grant.actor.id,
    reason,
    message: message === undefined ? null : cutToBytes(message, MESSAGE_MAX_BYTES),
    traceId: grant.traceId,
  };
}
