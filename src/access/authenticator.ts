import { LRUCache } from 'lru-cache';

import type { Clock } from '../kernel/clock.js';
import { parseId } from '../kernel/ids.js';
import { turnstile } from '../kernel/turnstile.js';
import type { Queryable } from '../store/database.js';
import type { TokenRow } from '../store/rows.js';
import { localActor, type Actor } from './actor.js';
import { AuthFailure } from './errors.js';
import { hashOf, isSecret } from './secret.js';
import { tokenByHash } from './store.js';
import { expired } from './token-model.js';
import { tokenStates, type TokenState } from './token-states.js';
import { tokenUses } from './token-uses.js';

/**
 * From a bearer token to an actor, and from an actor to whether it still is one.
 *
 * Tokens are cached. What the change log says of a token reaches the cache before any stream is told of the same step,
 * so that no stream sends what a revocation that came before it forbids. While the feed is not current, and for what
 * was read longer ago than a minute, the database is asked instead.
 */
export interface Authenticator {
  /**
   * Whose token it is. `token` is the credential without `Bearer `; null: none was sent. `peer` is where it came from.
   * Rejects if the database has to be asked and is away.
   */
  fromBearer(token: string | null, peer: { readonly address: string }): Promise<Actor | AuthFailure>;
  /**
   * For whoever holds on to an actor (a socket, a stream), before each send. Synchronous, by what this process knows.
   * `valid` means: may still see and do exactly what it could when the actor was made. After any other answer the
   * actor is not to be used again; after `changed` the same credential makes a new one.
   */
  actorState(actor: Actor): ActorState;
  /** A token as this process has just written it: known here at once, without waiting for the log. */
  written(token: TokenRow): void;
  /** Writes down which tokens were used. Called by a loop, off the path of requests. */
  flushUses(): Promise<void>;
  /** No longer listens. */
  close(): void;
  /** Entries of the caches, for the metrics and for the proof that they are bounded. */
  readonly sizes: { readonly known: number; readonly unknown: number; readonly live: number };
}

export type ActorState = 'valid' | 'expired' | 'revoked' | 'changed';

/** What of the feed is used here. */
export interface TokenFeed {
  readonly current: boolean;
  listen(
    kinds: readonly 'TOKEN'[],
    listener: (change: { readonly objectId: string; readonly op: string; readonly after: unknown }) => void,
  ): () => void;
  onNewHistory(listener: () => void): () => void;
}

export interface AuthenticatorDeps {
  /** The owner's: the read role may not see hashes. */
  readonly pool: Queryable;
  readonly feed: TokenFeed;
  readonly clock: Clock;
  /** Bound to loopback without access control: who sends no token and comes from there is `local`. */
  readonly open: boolean;
}

const KNOWN_MAX = 10_000;
/** Only for clients that keep sending one wrong token; a flood of different ones costs a look-up each. */
const UNKNOWN_MAX = 1_000;
const TRUSTED_MS = 60_000;
/** Look-ups at a time: a flood of wrong tokens must leave the pool to those who hold good ones. */
const LOOKUPS_MAX = 4;

export function authenticator(deps: AuthenticatorDeps): Authenticator {
  const { pool, feed, clock } = deps;
  const local = localActor();
  const states = tokenStates();
  const uses = tokenUses(pool, clock);
  const known = new LRUCache<string, { readonly state: TokenState; readonly readMs: number }>({
    max: KNOWN_MAX,
  });
  const unknown = new LRUCache<string, { readonly readMs: number }>({ max: UNKNOWN_MAX });
  const lookups = new Map<string, Promise<TokenState | undefined>>();
  const inTurn = turnstile(LOOKUPS_MAX);

  const unlisten = feed.listen(['TOKEN'], ({ objectId, op, after }) => {
    const id = parseId('TOKEN', objectId);
    if (!id) return;
    if (op === 'INSERT') unknown.clear();
    // The projection of this kind is the public row.
    states.changed(id, op === 'DELETE' ? 'gone' : (after as TokenRow));
  });

  // Of a database that was restored, tokens may be other than they were: everyone has to show theirs again.
  let histories = 0;
  const unlistenHistory = feed.onNewHistory(() => {
    histories += 1;
    known.clear();
    unknown.clear();
    states.clear();
  });

  const fresh = (readMs: number): boolean => feed.current && clock.monotonicMs() - readMs < TRUSTED_MS;

  const lookUp = async (hash: string): Promise<TokenState | undefined> => {
    const readMs = clock.monotonicMs();
    const history = histories;
    const reading = states.beginReading();
    try {
      const row = await tokenByHash(pool, hash);
      if (history !== histories) return await lookUp(hash);
      const id = row && parseId('TOKEN', row.id);
      if (!row || !id) {
        // A token that was made while we looked must not be remembered as none.
        if (feed.current && !reading.sawChange) unknown.set(hash, { readMs });
        return undefined;
      }
      const state = states.read(id, row, reading);
      known.set(hash, { state, readMs });
      return state;
    } finally {
      reading.end();
    }
  };

  /** Requests that bring the same token at once share one look-up. */
  const sharedLookUp = (hash: string): Promise<TokenState | undefined> => {
    const running = lookups.get(hash);
    if (running) return running;
    const started = inTurn(async () => lookUp(hash)).finally(() => lookups.delete(hash));
    lookups.set(hash, started);
    return started;
  };

  return {
    async fromBearer(token, peer) {
      if (token === null) {
        return deps.open && isLoopbackAddress(peer.address) ? local : new AuthFailure('missing');
      }
      if (!isSecret(token)) return new AuthFailure('unknown');
      const hash = hashOf(token);
      const miss = unknown.get(hash);
      if (miss && fresh(miss.readMs)) return new AuthFailure('unknown');
      const hit = known.get(hash);
      const state = hit && fresh(hit.readMs) ? hit.state : await sharedLookUp(hash);
      if (!state) return new AuthFailure('unknown');
      const { actor } = state;
      const standing = standingOf(state, clock.now());
      if (standing !== 'valid') return new AuthFailure(standing);
      uses.note(state.id);
      return actor;
    },
    actorState(actor) {
      const state = states.of(actor);
      if (!state) {
        if (actor.tokenId !== null) return 'changed'; // no actor of ours: whoever holds it has to come again
        return expired(actor.expiresAt, clock.now()) ? 'expired' : 'valid';
      }
      const standing = standingOf(state, clock.now());
      if (standing !== 'valid') return standing;
      return state.actor.classKey === actor.classKey ? 'valid' : 'changed';
    },
    written(token) {
      const id = parseId('TOKEN', token.id);
      if (id) states.changed(id, token);
    },
    flushUses: () => uses.flush(),
    close() {
      unlisten();
      unlistenHistory();
    },
    get sizes() {
      return { known: known.size, unknown: unknown.size, live: states.size };
    },
  };
}

function standingOf(state: TokenState, now: Date): 'valid' | 'expired' | 'revoked' {
  if (state.gone || state.token.revokedAt !== null) return 'revoked';
  return expired(state.token.expiresAt, now) ? 'expired' : 'valid';
}

function isLoopbackAddress(address: string): boolean {
  return /^(::1|(::ffff:)?127(\.\d{1,3}){3})$/.test(address);
}
