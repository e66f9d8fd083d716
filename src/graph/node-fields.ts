import { kindOfId } from '../kernel/ids.js';
import { operationError } from './errors.js';
import type { Graph } from './graph.js';

/** Relay's look-up of any object by its id. */
const NODES_MAX = 100;

export function addNodeFields({ builder, reader }: Pick<Graph, 'builder' | 'reader'>): void {
  const node = builder.nodeInterfaceRef();
  builder.queryFields((t) => ({
    node: t.field({
      type: node,
      nullable: true,
      description: 'One object of any kind; null if there is none that the caller may see.',
      args: { id: t.arg.id({ required: true, description: 'Its id.' }) },
      resolve: (_root, { id }, context, info) => {
        const kind = kindOfId(id);
        return kind === undefined ? null : reader.byId(kind, id, context, info);
      },
    }),
    nodes: t.field({
      type: [node],
      nullable: { list: false, items: true },
      description:
        'Several objects of any kinds, in the order of their ids; null where there is none that the caller may see.',
      complexity: ({ ids }) => ({ field: 1, multiplier: ids.length }),
      args: { ids: t.arg.idList({ required: true, description: `Their ids, at most ${NODES_MAX}.` }) },
      resolve: (_root, { ids }, context, info) => {
        if (ids.length > NODES_MAX) {
          throw operationError('BAD_USER_INPUT', `\`ids\` must be at most ${NODES_MAX}.`);
        }
        return reader.byIds(ids, context, info);
      },
    }),
  }));
}
