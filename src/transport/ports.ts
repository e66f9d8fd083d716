import type { Actor } from '../access/actor.js';
import type { AuthFailure } from '../access/errors.js';
import type { ActorState } from './hub.js';

/** What the transports need of access control, so that tests of pure protocol need no tokens and no database. */
export interface Peer {
  readonly address: string;
}

export interface Authenticator {
  fromBearer(token: string | null, peer: Peer): Promise<Actor | AuthFailure>;
  /** Synchronous: asked before every send. */
  actorState(actor: Actor): ActorState;
}

export interface OriginPolicy {
  /** Undefined when the request may go on; otherwise the sentence that refuses it. */
  refusal(headers: { readonly host?: string | undefined; readonly origin?: string | undefined }): string | undefined;
  /** Whether answers carry CORS headers for this origin: a listed one, not merely the server's own. */
  crossOrigin(origin: string): boolean;
}
