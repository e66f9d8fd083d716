import { changesArgument } from '../graph/change-types.js';
import { pageComplexity } from '../graph/connection.js';
import { PAGE_SIZE_DEFAULT } from '../graph/reading/page.js';
import { operationError } from '../graph/errors.js';
import { grantOf, kindsFor, type Graph } from '../graph/graph.js';
import { kindOfId } from '../kernel/ids.js';

/** The change log in the graph: where it stands, and what it tells. */
export function addChangeSchema({ builder, changes, feed }: Graph): void {
  builder.queryFields((t) => ({
    head: t.field({
      type: 'ChangeCursor',
      description:
        'The place of now in the change log: a stream `after` it tells what is committed from now on.',
      resolve: () => feed.head(),
    }),
    changes: t.field({
      type: changes.page,
      description:
        'The change log of what the caller may see, oldest first. A page may hold fewer changes than asked for and say that there are more.',
      complexity: pageComplexity,
      args: {
        first: changesArgument(t.arg),
        after: t.arg({
          type: 'ChangeCursor',
          description: 'Only what comes behind this place. Null: from the beginning of the log.',
        }),
        kinds: t.arg({
          type: [changes.kind],
          description: 'Only changes of these kinds of objects. Null: of all kinds.',
        }),
        objectId: t.arg.id({ description: 'Only changes of this object. Null: of all objects.' }),
      },
      resolve: (_root, args, context) => {
        const objectId = args.objectId ?? undefined;
        if (objectId !== undefined && kindOfId(objectId) === undefined) {
          throw operationError('BAD_USER_INPUT', '`objectId` must be the id of an object.');
        }
        return feed.page({
          kinds: kindsFor(context, args.kinds),
          namespaces: grantOf(context, 'change:read').namespaces,
          objectId,
          after: args.after ?? null,
          limit: args.first ?? PAGE_SIZE_DEFAULT,
        });
      },
    }),
  }));
}
