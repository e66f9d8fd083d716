import type { TokenId } from '../kernel/ids.js';
import type { TokenRow } from '../store/rows.js';
import type { Actor } from './actor.js';
import { actorOf } from './token-model.js';

/**
 * The newest that this process knows of each token that somebody here still is: one state a token, shared by every
 * actor that was made from it, and held by them. So a long-lived stream finds out about its token however full the
 * cache was in between, and what nobody holds costs nothing.
 */
export interface TokenState {
  readonly id: TokenId;
  readonly token: TokenRow;
  /** Deleted from the database. */
  readonly gone: boolean;
  /** Made anew when the token changes; those before stay actors of this state. */
  readonly actor: Actor;
}

/**
 * One read of the database, during which changes may come: what is read may then be older than what was told. Must
 * be ended.
 */
export interface Reading {
  readonly sawChange: boolean;
  end(): void;
}

export interface TokenStates {
  beginReading(): Reading;
  /** The state of a token that was just read, by `reading`. */
  read(id: TokenId, token: TokenRow, reading: Reading): TokenState;
  changed(id: TokenId, change: TokenRow | 'gone'): void;
  of(actor: Actor): TokenState | undefined;
  /** Forgets all: actors made before are of no state from then on. */
  clear(): void;
  readonly size: number;
}

type Mutable = { -readonly [K in keyof TokenState]: TokenState[K] };
type Noted = Reading & { readonly notes: Map<TokenId, TokenRow | 'gone'> };

export function tokenStates(): TokenStates {
  let byActor = new WeakMap<Actor, Mutable>();
  const byId = new Map<TokenId, WeakRef<Mutable>>();
  const readings = new Set<Noted>();
  const collected = new FinalizationRegistry<TokenId>((id) => {
    // A new state may stand there by now.
    if (byId.get(id)?.deref() === undefined) byId.delete(id);
  });

  const apply = (state: Mutable, change: TokenRow | 'gone'): void => {
    if (change === 'gone') {
      state.gone = true;
      return;
    }
    // Never back: the log, a read and our own write may tell of the same token in any order.
    if (change.version <= state.token.version) return;
    state.token = change;
    state.actor = actorOf(change, state.id);
    byActor.set(state.actor, state);
  };

  return {
    beginReading() {
      const notes = new Map<TokenId, TokenRow | 'gone'>();
      const reading: Noted = {
        notes,
        get sawChange() {
          return notes.size > 0;
        },
        end: () => readings.delete(reading),
      };
      readings.add(reading);
      return reading;
    },
    read(id, token, reading) {
      let state = byId.get(id)?.deref();
      if (state) {
        apply(state, token);
      } else {
        state = { id, token, gone: false, actor: actorOf(token, id) };
        byActor.set(state.actor, state);
        byId.set(id, new WeakRef(state));
        collected.register(state, id);
      }
      const note = (reading as Noted).notes.get(id); // every reading is made by beginReading above
      if (note) apply(state, note);
      return state;
    },
    changed(id, change) {
      for (const { notes } of readings) notes.set(id, change);
      const state = byId.get(id)?.deref();
      if (state) apply(state, change);
    },
    of: (actor) => byActor.get(actor),
    clear() {
      byActor = new WeakMap();
      byId.clear();
    },
    get size() {
      return byId.size;
    },
  };
}
