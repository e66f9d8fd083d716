import type { TokenId } from '../kernel/ids.js';

export const ROLES = ['VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER', 'AGENT', 'ADMIN'] as const;
export type Role = (typeof ROLES)[number];

/** Who asks, as one request or socket knows it. Made by `access/` alone; immutable. */
export interface Actor {
  /** Stands in change rows: `token:<id>`, `local`, `system:<part>`. */
  readonly id: string;
  /** For people: the token's name, or `local`. */
  readonly name: string;
  readonly roles: ReadonlySet<Role>;
  readonly namespaces: 'all' | ReadonlySet<string>;
  /** For the AGENT role: the agent name it may speak for; a trailing `*` makes it a prefix. */
  readonly agentName: string | null;
  readonly tokenId: TokenId | null;
  readonly expiresAt: Date | null;
  /**
   * Equal for actors who may see and do exactly the same: roles, namespaces and agent name, never the person.
   * Subscribers of one class share executions.
   */
  readonly classKey: string;
}

/** What decides over an actor's rights; everything else about it is for people. */
export interface Rights {
  readonly roles: readonly Role[];
  readonly namespaces: 'all' | readonly string[];
  readonly agentName: string | null;
}

export function classKey(rights: Rights): string {
  const { roles, namespaces, agentName } = rights;
  return JSON.stringify([sorted(roles), namespaces === 'all' ? namespaces : sorted(namespaces), agentName]);
}

/** Everyone on a loopback server without tokens. */
export function localActor(): Actor {
  return unbound('local', 'local', ['ADMIN']);
}

/** The server itself. Holds no role: it acts by `systemGrant`, never by `authorise`. */
export function systemActor(part: string): Actor {
  return unbound(`system:${part}`, `system:${part}`, []);
}

function unbound(id: string, name: string, roles: readonly Role[]): Actor {
  return {
    id,
    name,
    roles: new Set(roles),
    namespaces: 'all',
    agentName: null,
    tokenId: null,
    expiresAt: null,
    classKey: classKey({ roles, namespaces: 'all', agentName: null }),
  };
}

function sorted(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}
