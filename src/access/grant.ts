import type { Action } from './actions.js';
import type { Actor } from './actor.js';

declare const granted: unique symbol;

/**
 * The proof that `authorise` said yes. Functions of the store take it as an argument: what has no grant cannot be
 * called by accident. Only `access/authorise.ts` makes one.
 */
export interface Grant<A extends Action = Action> {
  readonly [granted]: true;
  readonly action: A;
  readonly actor: Actor;
  /** What reads may return and writes may touch. */
  readonly namespaces: 'all' | ReadonlySet<string>;
  /**
   * For actions on agents: null allows every agent; otherwise the one agent's name, or a prefix that ends in `*`, that
   * the caller may speak for.
   */
  readonly agentName: string | null;
  /** W3C trace id of the request, or null. Stands in change rows. */
  readonly traceId: string | null;
}
