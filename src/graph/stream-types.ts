import type { ObjectRef } from '@pothos/core';

import type { ChangeStream, StreamItem } from '../changes/feed.js';
import type { Change, Projection } from '../changes/types.js';
import type { Clock } from '../kernel/clock.js';
import type { Reader } from '../kernel/tap.js';
import { addEnum } from './enum.js';
import type { Builder, Types } from './graph-types.js';
import type { EventSource, SourceEvent } from './stream-field.js';

/** One more than a snapshot may have, so that too many are noticed. */
export const SNAPSHOT_READ_ROWS = 20_001;

/** Events of streams: what a mailbox gives, as the members of the schema's unions. */
export interface EventBase {
  readonly cursor: string;
  readonly at: Date;
}
interface ObjectEvent extends EventBase {
  readonly __typename: string;
  readonly object: Projection;
}
interface RemovedEvent extends ObjectEvent {
  readonly removal: 'LEFT_FILTER' | 'DELETED';
}
interface ResetEvent extends EventBase {
  readonly reason: 'SLOW_CONSUMER' | 'CURSOR_EXPIRED';
}
/** A transition, for streams that send every one. */
export interface TransitionEvent extends EventBase {
  readonly change: Change;
}

export function addStreamTypes(builder: Builder) {
  const event = builder.interfaceRef<EventBase>('StreamEvent').implement({
    description: 'What every event of a stream has.',
    fields: (t) => ({
      cursor: t.field({
        type: 'ChangeCursor',
        description: 'Resume `after` this, on any server, and nothing is missed and nothing comes twice.',
        resolve: (one) => one.cursor,
      }),
      at: t.field({
        type: 'DateTime',
        description: 'When it happened; for a snapshot, when it was read.',
        resolve: (one) => one.at,
      }),
    }),
  });
  const snapshotEnd = builder.objectRef<EventBase>('SnapshotEnd').implement({
    description: 'The snapshot is complete: what follows is live.',
    interfaces: [event],
  });
  const bookmark = builder.objectRef<EventBase>('Bookmark').implement({
    description:
      'All that you watch and that happened up to this cursor was told, or is told behind it as a newer state. Sent about each 15 s of silence, and before the server closes the connection.',
    interfaces: [event],
  });
  const resetReason = addEnum(builder, 'ResetReason', 'Why a watch starts over.', {
    SLOW_CONSUMER: 'The client did not take events as fast as they came, and some were dropped.',
    CURSOR_EXPIRED: 'The log no longer reaches back to the cursor that was given.',
  });
  const reset = builder.objectRef<ResetEvent>('Reset').implement({
    description: 'Forget what you hold: a new snapshot follows.',
    interfaces: [event],
    fields: (t) => ({
      reason: t.field({ type: resetReason, description: 'Why.', resolve: (one) => one.reason }),
    }),
  });
  const removalReason = addEnum(builder, 'RemovalReason', 'Why an object left a watch.', {
    LEFT_FILTER: 'It changed, and the filter no longer holds for it.',
    DELETED: 'It was deleted.',
  });
  const onExpired = addEnum(
    builder,
    'OnExpired',
    'What a watch does with a cursor that the log no longer reaches back to.',
    {
      ERROR: 'It ends with CURSOR_EXPIRED.',
      SNAPSHOT: 'It sends a Reset and a new snapshot.',
    },
  );
  return { event, snapshotEnd, bookmark, reset, removalReason, onExpired };
}
export type StreamTypes = ReturnType<typeof addStreamTypes>;

/** `DeploymentEvent` and its members `DeploymentAdded`, `DeploymentChanged`, `DeploymentRemoved`. */
export function addWatchUnion<Row>(
  builder: Builder,
  streams: StreamTypes,
  name: string,
  rowType: ObjectRef<Types, Row>,
) {
  // Pothos cannot compute with a row type that is still open; rows are objects.
  const type = rowType as unknown as ObjectRef<Types, object>;
  const field = name.slice(0, 1).toLowerCase() + name.slice(1);
  const member = (kind: 'Added' | 'Changed', description: string) =>
    builder.objectRef<ObjectEvent>(`${name}${kind}`).implement({
      description,
      interfaces: [streams.event],
      fields: (t) => ({
        [field]: t.field({
          type,
          description: `The ${field} at this version.`,
          resolve: (one) => one.object,
        }),
      }),
    });
  const removed = builder.objectRef<RemovedEvent>(`${name}Removed`).implement({
    description: `The ${field} is no longer what this watch is about.`,
    interfaces: [streams.event],
    fields: (t) => ({
      id: t.id({ description: `Which ${field} it was.`, resolve: (one) => one.object.id }),
      reason: t.field({ type: streams.removalReason, description: 'Why.', resolve: (one) => one.removal }),
      [field]: t.field({
        type,
        description: `The ${field} as it was when it left.`,
        resolve: (one) => one.object,
      }),
    }),
  });
  const types = [
    member('Added', `The ${field} is part of the snapshot, was created, or came into the filter.`),
    member(
      'Changed',
      `The ${field} changed. If several changes came faster than they could be sent, this is the newest.`,
    ),
    removed,
    streams.snapshotEnd,
    streams.bookmark,
    streams.reset,
  ] as const;
  return builder.unionType(`${name}Event`, {
    description: `What a watch of ${field}s sends.`,
    types: [...types],
    resolveType: (one) => (one as ObjectEvent).__typename, // made by `watchEvents` below
  });
}

/** How the items of a stream are told in the schema's words. */
export type Translate = (item: StreamItem) => SourceEvent;

/** Of a watch of objects named `name`. One for all streams: who gets the same item gets the same event. */
export function watchTranslation(name: string): Translate {
  return remembering((item) => watchEvent(item, name));
}

/** Of transitions. Bookmarks are none. */
export function transitionTranslation(): Translate {
  return remembering((item) => {
    if (item.type !== 'change') return silent(item.cursor);
    const value: TransitionEvent = { cursor: item.cursor, at: item.change.at, change: item.change };
    return { value, cursor: item.cursor, share: shareable(item), variant: 'TRANSITION' };
  });
}

/** A LATEST stream. */
export function watchEvents(stream: ChangeStream, translate: Translate, clock: Clock): EventSource {
  return new WatchSource(stream, translate, clock);
}

/** An EVERY stream. */
export function transitionEvents(stream: ChangeStream, translate: Translate): EventSource {
  return new StreamSource(stream, translate);
}

/** The items of one change are told to all who want them one after the other. */
function remembering(translate: Translate): Translate {
  let last: { readonly item: StreamItem; readonly event: SourceEvent } | undefined;
  return (item) => {
    if (last?.item !== item) last = { item, event: translate(item) };
    return last.event;
  };
}

/** Classes, since there are twenty thousand of them. */
class StreamSource implements EventSource {
  readonly stream: ChangeStream;
  readonly #translate: Translate;

  constructor(stream: ChangeStream, translate: Translate) {
    this.stream = stream;
    this.#translate = translate;
  }

  get ended(): boolean {
    return this.stream.ended;
  }

  take(): SourceEvent | undefined {
    const item = this.stream.take();
    return item && this.#translate(item);
  }

  wait(reader: Reader): void {
    this.stream.wait(reader);
  }

  close(): void {
    this.stream.close();
  }

  bookmark(): SourceEvent | undefined {
    const { cursor } = this.stream;
    return cursor === null ? undefined : silent(cursor);
  }
}

class WatchSource extends StreamSource {
  readonly #clock: Clock;

  constructor(stream: ChangeStream, translate: Translate, clock: Clock) {
    super(stream, translate);
    this.#clock = clock;
  }

  override bookmark(): SourceEvent | undefined {
    const { cursor } = this.stream;
    return cursor === null ? undefined : plain('Bookmark', { cursor, at: this.#clock.now() }, 'BOOKMARK');
  }
}

function watchEvent(item: StreamItem, name: string): SourceEvent {
  const { cursor } = item;
  switch (item.type) {
    case 'object': {
      const value: ObjectEvent = { __typename: `${name}Added`, cursor, at: item.at, object: item.object };
      return { value, cursor, share: null, variant: 'ADDED' };
    }
    case 'change': {
      const { change } = item;
      const base = { cursor, at: change.at, object: change.after };
      if (!item.has) {
        const removal = change.op === 'DELETE' ? 'DELETED' : 'LEFT_FILTER';
        const value: RemovedEvent = { __typename: `${name}Removed`, ...base, removal };
        return { value, cursor, share: shareable(item), variant: `REMOVED:${removal}` };
      }
      const kind = item.had ? 'Changed' : 'Added';
      const value: ObjectEvent = { __typename: `${name}${kind}`, ...base };
      return { value, cursor, share: shareable(item), variant: kind.toUpperCase() };
    }
    case 'snapshotEnd':
      return plain('SnapshotEnd', { cursor, at: item.at }, 'SNAPSHOT_END');
    case 'bookmark':
      return plain('Bookmark', { cursor, at: item.at }, 'BOOKMARK');
    case 'reset':
      return plain('Reset', { cursor, at: item.at, reason: item.reason }, 'RESET');
  }
}

function silent(cursor: string): SourceEvent {
  return { value: null, cursor, share: null, variant: 'SILENT', silent: true };
}

function plain(typename: string, event: EventBase | ResetEvent, variant: string): SourceEvent {
  return { value: { __typename: typename, ...event }, cursor: event.cursor, share: null, variant };
}

/** An event shows its cursor: two subscribers can share one only where it is that of the change itself. */
function shareable(item: StreamItem & { type: 'change' }): object | null {
  return item.cursor === item.change.cursor ? item.change : null;
}
