import type { ArgBuilder } from '@pothos/core';

import type { ChangePage, LogEntry } from '../changes/feed.js';
import type { ObjectKind } from '../kernel/ids.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, pageSizeSchema } from './reading/page.js';
import { addEnum } from './enum.js';
import type { Builder, Types } from './graph-types.js';

/** The change log as the graph shows it: what happened, to what, when, why and by whom. */
export function addChangeTypes(builder: Builder) {
  const kind = addEnum<ObjectKind>(
    builder,
    'ObjectKind',
    'The kinds of objects that the change log tells of.',
    {
      RUNTIME: 'A runtime; ids begin with `rt_`.',
      RELEASE: 'A release; ids begin with `rel_`.',
      DEPLOYMENT: 'A deployment; ids begin with `dep_`.',
      AGENT: 'An agent; ids begin with `agt_`.',
      TOKEN: 'An API token; ids begin with `tok_`.',
      ROLLOUT: 'A rollout; ids begin with `ro_`.',
    },
  );
  const op = addEnum<LogEntry['op']>(builder, 'ChangeOp', 'What was done to an object.', {
    INSERT: 'It was created.',
    UPDATE: 'It was changed.',
    DELETE: 'It was deleted.',
  });
  const change = builder.objectRef<LogEntry>('Change').implement({
    description: 'One row of the change log: one version of one object. Kept for 400 days.',
    fields: (t) => ({
      cursor: t.field({
        type: 'ChangeCursor',
        description: 'The place behind this change. Streams can be resumed from it for at least 48 hours.',
        resolve: (entry) => entry.cursor,
      }),
      at: t.field({
        type: 'DateTime',
        description: 'When it was made, by the clock of the database.',
        resolve: (entry) => entry.at,
      }),
      kind: t.field({
        type: kind,
        description: 'What kind of object changed.',
        resolve: (entry) => entry.kind,
      }),
      objectId: t.exposeID('objectId', { description: 'Which object changed. It may be gone by now.' }),
      namespace: t.exposeString('namespace', {
        nullable: true,
        description:
          'The namespace of the object; null for agents and tokens, which stand outside namespaces.',
      }),
      op: t.field({ type: op, description: 'What was done.', resolve: (entry) => entry.op }),
      version: t.exposeInt('version', {
        description: 'The version that this change made. Versions of an object have no gap.',
      }),
      from: t.exposeString('from', {
        nullable: true,
        description: 'The phase or health before; null on creation, and for kinds that have neither.',
      }),
      to: t.exposeString('to', {
        nullable: true,
        description: 'The phase or health afterwards; null for kinds that have neither.',
      }),
      reason: t.exposeString('reason', {
        nullable: true,
        description: 'Why, for machines; null if nothing was said.',
      }),
      message: t.exposeString('message', {
        nullable: true,
        description: 'Why, for people; null if nothing was said.',
      }),
      actor: t.exposeString('actor', {
        description:
          'Who: `token:<id>`, `local`, `system:<part>`, or `sql:<user>` for a change made behind the server.',
      }),
      traceId: t.exposeString('traceId', {
        nullable: true,
        description: 'The W3C trace id of the request that made the change; null if it had none.',
      }),
    }),
  });
  const page = builder.objectRef<ChangePage>('ChangePage').implement({
    description: 'A part of the change log.',
    fields: (t) => ({
      nodes: t.field({
        type: [change],
        description: 'The changes, in the order asked for.',
        resolve: ({ entries }) => [...entries],
      }),
      hasMore: t.exposeBoolean('hasMore', { description: 'Whether there is more behind the last one.' }),
      cursor: t.field({
        type: 'ChangeCursor',
        description: 'The place behind the last change; when there is none, the place of now.',
        resolve: ({ cursor }) => cursor,
      }),
    }),
  });
  return { kind, change, page };
}
export type ChangeTypes = ReturnType<typeof addChangeTypes>;

/** The arguments of an object's own timeline. */
export function timelineArguments(t: ArgBuilder<Types>) {
  return {
    first: changesArgument(t),
    beforeVersion: t.int({
      description: 'Only changes that made a version below this one. Null: from the newest.',
    }),
  };
}

export function changesArgument(t: ArgBuilder<Types>) {
  return t.int({
    description: `How many at most, 1 to ${PAGE_SIZE_MAX}. Null: ${PAGE_SIZE_DEFAULT}.`,
    validate: pageSizeSchema,
  });
}
