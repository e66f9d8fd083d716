import type { Actor } from './actor.js';

/** Who asks for one operation, and the ids that tie log lines and change rows to it. */
export interface Caller {
  readonly actor: Actor;
  /** W3C trace id of the request, or null; stands in change rows. */
  readonly traceId: string | null;
  /** Made by the server for each operation; stands in log lines and in masked errors. */
  readonly requestId: string;
}
