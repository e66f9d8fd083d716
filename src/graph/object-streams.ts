import type { ArgBuilder, EnumRef, InputRef } from '@pothos/core';
import type { z } from 'zod';

import type { Action } from '../access/actions.js';
import type { Grant } from '../access/grant.js';
import type { Change, Projection } from '../changes/types.js';
import { matches, type Predicate } from '../kernel/filter.js';
import type { ObjectKind } from '../kernel/ids.js';
import { canonicalJson } from '../kernel/json.js';
import type { Context } from './context.js';
import { parseFilter } from './filter-input.js';
import { grantOf, type Graph } from './graph.js';
import type { Types } from './graph-types.js';
import type { EventSource } from './stream-field.js';
import { transitionEvents, transitionTranslation, watchEvents, watchTranslation } from './stream-types.js';

/** What the two streams of a kind need to know of it. */
export interface StreamedKind<F extends string, A extends Action> {
  readonly kind: ObjectKind;
  /** The name of its type. */
  readonly name: string;
  readonly action: A;
  readonly filterSchema: z.ZodType<Predicate<F>>;
  /** Reads what a watch begins with. */
  snapshot(predicate: Predicate<F>, grant: Grant<A>): SnapshotRead;
}
type SnapshotRead = NonNullable<Parameters<Graph['feed']['open']>[0]['snapshot']>['read'];

export interface StreamArgs {
  readonly filter?: unknown;
  readonly after?: string | null | undefined;
}
export interface WatchArgs extends StreamArgs {
  readonly onExpired?: 'ERROR' | 'SNAPSHOT' | null | undefined;
}

export function transitionArguments<F>(t: ArgBuilder<Types>, filter: InputRef<F>, what: string) {
  return {
    filter: t({
      type: filter,
      description: `Which ${what}, as they are before or after a change. Null: all.`,
    }),
    after: t({ type: 'ChangeCursor', description: 'Go on behind this cursor. Null: from now on.' }),
  };
}

export function watchArguments<F>(
  t: ArgBuilder<Types>,
  filter: InputRef<F>,
  onExpired: EnumRef<Types, 'ERROR' | 'SNAPSHOT'>,
  what: string,
) {
  return {
    filter: t({ type: filter, description: `Which ${what}. Null: all.` }),
    after: t({ type: 'ChangeCursor', description: 'Go on behind this cursor. Null: a snapshot first.' }),
    onExpired: t({
      type: onExpired,
      description: 'What to do when the log no longer reaches back to `after`. Null: ERROR.',
    }),
  };
}

type Open<Args> = (args: Args, context: Context) => EventSource;

/** Every move of the objects' state (phase, health), once and in order. */
export function transitionStreams<F extends string, A extends Action>(
  { feed }: Pick<Graph, 'feed'>,
  streamed: StreamedKind<F, A>,
): Open<StreamArgs> {
  const translate = transitionTranslation();
  const changed = (change: Change) => change.from !== change.to;
  return (args, context) => {
    const predicate = parseFilter(streamed.filterSchema, args.filter);
    const stream = feed.open({
      kinds: [streamed.kind],
      namespaces: grantOf(context, streamed.action).namespaces,
      mode: 'EVERY',
      filterKey: canonicalJson(['moves', predicate]),
      matches: (_kind, object) => matchesObject(predicate, object),
      changed,
      after: args.after ?? null,
      onExpired: 'ERROR',
    });
    return transitionEvents(stream, translate);
  };
}

/** The objects of a filter, kept current. */
export function watchStreams<F extends string, A extends Action>(
  { feed, clock }: Pick<Graph, 'feed' | 'clock'>,
  streamed: StreamedKind<F, A>,
): Open<WatchArgs> {
  const translate = watchTranslation(streamed.name);
  return (args, context) => {
    const grant = grantOf(context, streamed.action);
    const predicate = parseFilter(streamed.filterSchema, args.filter);
    const stream = feed.open({
      kinds: [streamed.kind],
      namespaces: grant.namespaces,
      mode: 'LATEST',
      filterKey: canonicalJson(['every', predicate]),
      matches: (_kind, object) => matchesObject(predicate, object),
      after: args.after ?? null,
      onExpired: args.onExpired ?? 'ERROR',
      snapshot: {
        kind: streamed.kind,
        // All that the rows of the snapshot depend on.
        key: canonicalJson([
          streamed.kind,
          predicate,
          grant.namespaces === 'all' ? null : [...grant.namespaces].sort(),
        ]),
        read: streamed.snapshot(predicate, grant),
      },
    });
    return watchEvents(stream, translate, clock);
  };
}

function matchesObject<F extends string>(predicate: Predicate<F>, object: Projection): boolean {
  return matches(predicate, object as { readonly [K in F]?: unknown } & { readonly labels?: unknown }); // a row, whose fields the filter names
}
