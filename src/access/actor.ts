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
