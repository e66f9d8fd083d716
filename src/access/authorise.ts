import { ACTIONS, type Action } from './actions.js';
import { systemActor, type Actor, type Role } from './actor.js';
import type { Caller } from './caller.js';
import type { Grant } from './grant.js';

/**
 * The one place that says yes. A grant is as wide as the actor's roles and namespaces allow for that action, and
 * narrowed to `scope` where the object is known: functions of the store hold every row against it.
 */

/** What the caller wants to act on, as far as it is known; `{}` when only the rows themselves will tell. */
export interface Scope {
  readonly namespace?: string;
  readonly agentName?: string;
}

/**
 * The grant, or undefined if the actor may not. Undefined is NotFound to the caller where an object is named: a
 * refusal must not tell that it exists.
 */
export function authorise<A extends Action>(
  caller: Caller,
  action: A,
  scope: Scope = {},
): Grant<A> | undefined {
  const { actor } = caller;
  const roles = allowedRoles(actor, action);
  if (roles.length === 0) return undefined;
  const rule = ACTIONS[action];

  let namespaces: 'all' | ReadonlySet<string> = 'all';
  if (rule.scope === 'namespace') {
    namespaces = actor.namespaces;
    if (scope.namespace !== undefined) {
      if (!withinNamespaces(actor.namespaces, scope.namespace)) return undefined;
      namespaces = new Set([scope.namespace]);
    }
  }

  let agentName: string | null = null;
  if (rule.scope === 'agent' && roles.every((role) => role === 'AGENT')) {
    // A token of the AGENT role without a name speaks for nobody; `createToken` refuses to make one.
    if (actor.agentName === null) return undefined;
    if (scope.agentName !== undefined && !agentNameCovers(actor.agentName, scope.agentName)) return undefined;
    agentName = scope.agentName ?? actor.agentName;
  }
  return makeGrant(action, actor, namespaces, agentName, caller.traceId);
}

/** Whether any scope at all would do: the check of a whole operation, made before it runs. */
export function mayEver(actor: Actor, action: Action): boolean {
  return allowedRoles(actor, action).length > 0;
}

/** For what the server does by itself; its change rows say `system:<part>`. */
export function systemGrant<A extends Action>(action: A, part: string): Grant<A> {
  return makeGrant(action, systemActor(part), 'all', null, null);
}

export function withinNamespaces(namespaces: 'all' | ReadonlySet<string>, namespace: string): boolean {
  return namespaces === 'all' || namespaces.has(namespace);
}

/** `pattern` is an agent's name, or a prefix that ends in `*`. */
export function agentNameCovers(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

function allowedRoles(actor: Actor, action: Action): Role[] {
  const allowed: readonly Role[] = ACTIONS[action].roles;
  return allowed.filter((role) => actor.roles.has(role));
}

function makeGrant<A extends Action>(
  action: A,
  actor: Actor,
  namespaces: 'all' | ReadonlySet<string>,
  agentName: string | null,
  traceId: string | null,
): Grant<A> {
  // The brand exists in types alone, and this is the one function that may claim it.
  return { action, actor, namespaces, agentName, traceId } as Grant<A>;
}
