import type { Authenticator as FullAuthenticator } from '../access/authenticator.js';

/** What the transports need of access control, so that tests of pure protocol need no tokens and no database. */
export type Authenticator = Pick<FullAuthenticator, 'fromBearer' | 'actorState'>;
