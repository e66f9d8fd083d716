import type { GraphQLResolveInfo } from 'graphql';

import { nextOf, type Tap } from '../kernel/tap.js';
import type { Context } from './context.js';

/**
 * What every Subscription field is made of. The transports' hub takes the definition from `extensions.stream` and runs
 * it itself, so that equal subscribers share one execution; graphql-js' own `subscribe` finds an async iterator over the
 * same source, so that a test or a simple client needs no hub.
 */
export interface StreamDefinition {
  /**
   * Attaches at once: what happens after this call is in the source. Throws operation errors. The arguments decide
   * which events come, never what an event shows: subscribers that differ in them alone share executions.
   */
  open(args: Record<string, unknown>, context: Context): EventSource;
}

/** `take` throws an operation error when the server ends it. */
export interface EventSource extends Tap<SourceEvent> {
  /** Frees everything at once, and wakes who waits. May be called twice. */
  close(): void;
  /**
   * The place behind the last event that was taken, as an event of its own: what a client gets last before the server
   * closes its connection. Undefined when there is no place to tell.
   */
  bookmark(): SourceEvent | undefined;
}

export interface SourceEvent {
  /** What the root field resolves to. */
  readonly value: unknown;
  /** Where to resume after this event; the `id:` of its SSE frame. */
  readonly cursor: string;
  /** Subscribers of one class whose events have equal `share` and `variant` get one execution; null: never shared. */
  readonly share: object | null;
  readonly variant: string;
  /** Nothing happened, and the field's type has no word for it: only the place moved. Told where the protocol can. */
  readonly silent?: true;
}

/** The three options that make a Pothos subscription field a stream. */
export function streaming<Args extends object>(open: (args: Args, context: Context) => EventSource) {
  const stream: StreamDefinition = {
    open: (args, context) => open(args as Args, context), // graphql-js coerced them by the field's own arguments
  };
  return {
    extensions: { stream },
    subscribe: (_root: unknown, args: Args, context: Context, info: GraphQLResolveInfo) =>
      iterate(open(args, context), info.fieldName) as AsyncIterable<never>, // `resolve` below gives its type to the field
    resolve: (root: unknown, _args: unknown, _context: unknown, info: GraphQLResolveInfo) =>
      (root as Record<string, unknown>)[info.fieldName] as never, // made by the pipeline or by the iterator below
  };
}

function iterate(source: EventSource, fieldName: string): AsyncIterableIterator<Record<string, unknown>> {
  // Not a generator: its `return` would wait behind a pending `next`, and leave the source open until the next event.
  return {
    async next() {
      let event = await nextOf(source);
      while (event?.silent) event = await nextOf(source);
      if (!event) return { done: true, value: undefined };
      return { done: false, value: { [fieldName]: event.value } };
    },
    return() {
      source.close();
      return Promise.resolve({ done: true, value: undefined });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
