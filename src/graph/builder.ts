import SchemaBuilder from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import ErrorsPlugin from '@pothos/plugin-errors';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import ValidationPlugin from '@pothos/plugin-validation';
import { getNamedType, isLeafType } from 'graphql';

import { kindOfId, type ObjectKind } from '../kernel/ids.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { Labels } from '../kernel/labels.js';
import type { Database } from '../store/database.js';
import { publicDatamodel, type PublicPrismaTypes } from '../store/public-types.js';
import type { Context } from './context.js';
import { InvalidInputError } from './failures.js';
import { addScalars } from './scalars.js';

/**
 * The builder of the graph: plugins, scalars and defaults. Made by a function, so that a test builds a schema of its own.
 *
 * Every Prisma type names a `select` of all its public columns, and its fields are added with `builder.objectFields`:
 * fields of the Prisma field builder carry a select of their own, by which Pothos would read again an object that an
 * event or a patch result already holds, and so show another version of it. A guard test refuses such fields.
 */
export interface GraphTypes {
  Context: Context;
  PrismaTypes: PublicPrismaTypes;
  DefaultFieldNullability: false;
  Scalars: {
    /** Ids are TypeIDs on both sides; global ids are these very texts. */
    ID: { Input: string; Output: string };
    DateTime: { Input: Date; Output: Date };
    ChangeCursor: { Input: string; Output: string };
    JSON: { Input: Json; Output: unknown };
    JSONObject: { Input: JsonObject; Output: unknown };
    Labels: { Input: Labels; Output: unknown };
  };
}

export function createBuilder(deps: { readonly database: Pick<Database, 'prisma'> }) {
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

export type Builder = ReturnType<typeof createBuilder>;

export const TYPE_OF_KIND = {
  RUNTIME: 'Runtime',
  RELEASE: 'Release',
  DEPLOYMENT: 'Deployment',
  AGENT: 'Agent',
  TOKEN: 'Token',
} as const satisfies Record<ObjectKind, string>;
