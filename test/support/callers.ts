import { classKey, localActor, type Actor, type Role } from '../../src/access/actor.js';
import type { Caller } from '../../src/access/caller.js';

function callerOf(actor: Actor): Caller {
  return { actor, traceId: null, requestId: 'test' };
}

/** Everyone on a loopback server: may do everything. */
export const local: Caller = callerOf(localActor());

/** Somebody with these rights, who holds no token. */
export function someone(rights: {
  readonly roles: readonly Role[];
  readonly namespaces?: readonly string[];
  readonly agentName?: string;
}): Caller {
  const { roles, agentName = null } = rights;
  const namespaces = rights.namespaces ?? 'all';
  return callerOf({
    id: `test:${roles.join('+')}`,
    name: roles.join('+'),
    roles: new Set(roles),
    namespaces: namespaces === 'all' ? 'all' : new Set(namespaces),
    agentName,
    tokenId: null,
    expiresAt: null,
    classKey: classKey({ roles, namespaces, agentName }),
  });
}
