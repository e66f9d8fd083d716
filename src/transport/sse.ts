import type { ServerResponse } from 'node:http';

import type { GraphQLError } from 'graphql';

import type { Actor } from '../access/actor.js';
import type { ActorState } from '../access/authenticator.js';
import type { Caller } from '../access/caller.js';
import {
  ACCESS_CHANGED,
  closeOf,
  CLOSE,
  type CloseCode,
  type Connections,
  type SweptConnection,
} from './connections.js';
import { sseEvent, ssePlace, type Payload } from './frames.js';
import type { Connection, Hub, Subscriber, Subscription } from './hub.js';
import type { TransportLimits } from './limits.js';
import { Liveness, type Verdict } from './liveness.js';
import { createOutlet, type FlushQueue, type Outlet } from './outlet.js';
import type { Answer, Pipeline, Prepared } from './pipeline.js';
import { codeOf, refusals } from './refusal.js';

/**
 * Event streams, as graphql-sse's "distinct connections" mode has them: one operation a response, `next` events with an
 * `id:` line that is the cursor, then `complete`. Errors come as `next`, refusals too, since a browser cannot read the body of a
 * refused stream. Where the server only asks the client to come back (drain, age), the response ends without
 * `complete`, and the browser resumes with `Last-Event-ID`.
 */
export interface EventStreams {
  /** Writes the answer, whatever it is. Resolves when the response has ended. */
  serve(response: ServerResponse, caller: Caller, work: EventStreamWork): Promise<void>;
}

export interface EventStreamWork {
  /** The prepared operation, or the errors in its place. */
  readonly prepared?: Prepared | undefined;
  readonly errors?: Answer['errors'];
  /** `Last-Event-ID`. */
  readonly after?: string | undefined;
  /** Runs a query or mutation. */
  run(prepared: Prepared): Promise<Answer>;
}

export interface EventStreamDeps {
  readonly pipeline: Pipeline;
  readonly hub: Hub;
  readonly connections: Connections;
  readonly limits: TransportLimits;
  readonly onTickEnd: FlushQueue;
  readonly random: () => number;
  readonly count: (kind: string, outcome: string) => void;
}

const COMPLETE = Buffer.from('event: complete\ndata:\n\n');
const COMMENT = Buffer.from(':\n\n');
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Proxies would hold events back until a buffer is full.
  'x-accel-buffering': 'no',
  // What has neither length nor chunks ends with its connection: nobody is to send another request behind it.
  connection: 'close',
};

export function createEventStreams(deps: EventStreamDeps): EventStreams {
  const { pipeline, hub, connections } = deps;

  function subscribe(
    session: StreamSession,
    caller: Caller,
    prepared: Prepared,
    after: string | undefined,
  ): Promise<void> {
    const refuse = (error: GraphQLError) => {
      deps.count('refused', codeOf(error));
      session.finish({ errors: pipeline.mask([error], caller, 'execute') });
      return Promise.resolve();
    };
    if (hub.full) return refuse(refusals.overloaded());
    if (!connections.admit(caller.actor)) return refuse(refusals.tooMany('connections of this principal'));
    connections.add(session);
    const subscription = hub.subscribe({
      prepared,
      caller,
      after,
      connection: session,
      subscriber: session,
    });
    if (!subscription) throw new Error('the hub became full within one call');
    session.subscription = subscription;
    return subscription.ended.then((end) => {
      deps.count('subscription', end.type === 'failed' ? codeOf(end.errors[0]) : 'ok');
      if (end.type === 'failed') session.finish({ errors: end.errors });
      if (end.type === 'completed') session.finish(undefined);
      session.release();
      connections.remove(session, 1000);
      connections.dismiss(caller.actor);
    });
  }

  return {
    async serve(response, caller, work) {
      // Ends with the connection: chunks would be frames around frames, other bytes to each subscriber.
      response.removeHeader('transfer-encoding');
      response.writeHead(200, HEADERS);
      response.flushHeaders();
      const session = new StreamSession(deps, response, caller.actor);
      response.once('close', () => session.release());
      session.outlet.push(COMMENT); // tells the client at once that the stream is open
      if (!work.prepared) {
        session.finish(work.errors ? { errors: work.errors } : undefined);
      } else if (work.prepared.plan.kind === 'subscription') {
        await subscribe(session, caller, work.prepared, work.after);
      } else {
        session.finish(await work.run(work.prepared));
      }
    },
  };
}

class StreamSession implements SweptConnection, Connection, Subscriber {
  readonly actor: Actor;
  readonly outlet: Outlet;
  subscription: Subscription | undefined;
  readonly #response: ServerResponse;
  readonly #connections: Connections;
  readonly #pipeline: Pipeline;
  readonly #liveness: Liveness;

  constructor(deps: EventStreamDeps, response: ServerResponse, actor: Actor) {
    this.actor = actor;
    // The socket itself is the leaner way; a pipelined request has none before those in front of it are answered.
    this.outlet = createOutlet(response.socket ?? response, deps.limits, deps.onTickEnd);
    this.#response = response;
    this.#connections = deps.connections;
    this.#pipeline = deps.pipeline;
    this.#liveness = new Liveness(deps.limits, deps.connections.nowMs, deps.random);
  }

  send(payload: Payload, cursor: string): void {
    this.outlet.push(payload.event(cursor));
  }

  sendPlace(cursor: string): void {
    this.outlet.push(ssePlace(cursor));
  }

  judge(nowMs: number): Verdict {
    return this.#liveness.judge(this.outlet, nowMs);
  }

  /** Nobody answers a comment; a peer that is gone shows when the kernel takes no more. */
  ping(): void {
    this.#liveness.heard();
    if (!this.outlet.paused) this.outlet.push(COMMENT);
  }

  deny(state: Exclude<ActorState, 'valid'>): void {
    const [code, reason] = closeOf(state);
    this.end(code, reason);
  }

  end(code: CloseCode, reason: string): void {
    if (this.outlet.closed) return;
    this.#connections.remove(this, code);
    if (code === CLOSE.restart || code === CLOSE.overload) this.subscription?.sendBookmark();
    if (code === CLOSE.denied || code === CLOSE.expired) {
      const why = code === CLOSE.denied ? 'revoked' : reason === ACCESS_CHANGED ? 'changed' : 'expired';
      this.finish({ errors: [refusals.unauthenticated(reason, why).toJSON()] });
    }
    this.outlet.flush();
    this.release();
    // A stalled reader takes no ending either.
    if (code === CLOSE.slow) this.#response.destroy();
    else this.#response.end();
  }

  /** A last result if there is one, and the word that no more will come. */
  finish(answer: Answer | undefined): void {
    if (answer) this.outlet.push(sseEvent(null, Buffer.from(JSON.stringify(answer))));
    this.outlet.push(COMPLETE);
    this.outlet.flush();
    this.outlet.close();
    this.#response.end();
  }

  /** Frees what the stream holds. May be called twice. */
  release(): void {
    this.subscription?.close();
    this.outlet.close();
  }
}
