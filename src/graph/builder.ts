import SchemaBuilder from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import ErrorsPlugin from '@pothos/plugin-errors';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import ValidationPlugin from '@pothos/plugin-validation';
import { getNamedType, isLeafType } from 'graphql';

import { kindOfId } from '../kernel/ids.js';
import { publicDatamodel } from '../store/public-types.js';
import { InvalidInputError } from './failures.js';
import type { Builder, GraphTypes } from './graph-types.js';
import { TYPE_OF_KIND } from './object-types.js';
import { addScalars } from './scalars.js';

/** All that Pothos is told of the client; its reads go out under the read role. */
export interface PrismaHandle {
  $connect(): Promise<void>;
}

/**
 * The builder of the graph: plugins, scalars and defaults. Made by a function, so that a test builds a schema of its own.
 *
 * Every Prisma type names a `select` of all its public columns, and its fields are added with `builder.objectFields`:
 * fields of the Prisma field builder carry a select of their own, by which Pothos would read again an object that an
 * event or a patch result already holds, and so show another version of it. A guard test refuses such fields.
 */
export function createBuilder(deps: { readonly database: { readonly prisma: PrismaHandle } }): Builder {
  const builder = new SchemaBuilder<GraphTypes>({
    plugins: [ErrorsPlugin, ValidationPlugin, RelayPlugin, PrismaPlugin, ComplexityPlugin],
    defaultFieldNullability: false,
    prisma: {
      client: deps.database.prisma,
      dmmf: publicDatamodel(),
      // Would print the comments of schema.prisma.
      exposeDescriptions: false,
      onUnusedQuery: 'error',
    },
    relay: {
      encodeGlobalID: (_typename, id) => String(id),
      decodeGlobalID: (id) => ({ typename: '', id }),
      nodeQueryOptions: false,
      nodesQueryOptions: false,
      nodeTypeOptions: {
        description: 'An object with an id that no other object has, of whatever kind.',
        resolveType: (value) => TYPE_OF_KIND[kindOfId((value as { id: string }).id) ?? 'DEPLOYMENT'], // every Node is a row with a TypeID
      },
      pageInfoTypeOptions: { description: 'Whether and where a list goes on beyond this page.' },
      hasNextPageFieldOptions: { description: 'Whether there is more behind the last object of this page.' },
      hasPreviousPageFieldOptions: {
        description: 'Whether there is more before the first object of this page.',
      },
      startCursorFieldOptions: { description: 'The place of the first object; null if the page is empty.' },
      endCursorFieldOptions: {
        description: 'The place of the last object, to be given as `after`; null if the page is empty.',
      },
      idFieldOptions: {
        description: 'A TypeID such as `dep_01h455vb4pex5vsknk084sn02q`: its prefix tells the kind.',
      },
    },
    errors: {
      directResult: true,
      // Bad input is a failure of the operation, as data. Authorisation came earlier, for the whole operation.
      unsafelyHandleInputErrors: true,
    },
    validation: { validationError: (failure) => new InvalidInputError(failure.issues) },
    complexity: {
      // The pipeline measures before it executes (`cost.ts`); a check per field would come too late for streams.
      disabled: true,
      fieldComplexity: (_args, _context, field) => ({
        field: isLeafType(getNamedType(field.type)) ? 0 : 1,
        multiplier: 1,
      }),
    },
  });
  addScalars(builder);
  builder.queryType({
    description: 'Reads. Every list is a connection, and shows only what the caller may see.',
  });
  builder.mutationType({ description: 'Writes. Each answers with its payload or with a named failure.' });
  builder.subscriptionType({ description: 'Live streams. Each event carries a cursor to resume after.' });
  return builder;
}
