import { readFile } from 'node:fs/promises';

import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import {
  buildSchema,
  extendSchema,
  lexicographicSortSchema,
  parse,
  printSchema,
  type GraphQLSchema,
} from 'graphql';
import { beforeAll, describe, expect, it } from 'vitest';

import { OPERATIONS } from '../../src/access/actions.js';
import { createBuilder } from '../../src/graph/builder.js';
import { printedSchema, unboundSchema } from '../../src/graph/print.js';
import { getDatamodel } from '../../src/store/generated/pothos.js';
import { PUBLIC_COLUMNS } from '../../src/store/public-types.js';
import { TABLES } from '../../src/store/tables.js';
import { internalFacts } from '../support/internal-facts.js';
import {
  forbiddenNames,
  internalReaches,
  missingDescriptions,
  namedParts,
  operationsWithoutRow,
  reachable,
} from '../support/schema-walk.js';

const TOKEN_NOUN = 'An API token is an object of the graph; what proves it is not shown.';
const ALLOWED_NAMES = new Map([
  ['Token', TOKEN_NOUN],
  ['TokenConnection', TOKEN_NOUN],
  ['TokenEdge', TOKEN_NOUN],
  ['TokenVersionConflict', TOKEN_NOUN],
  ['ObjectKind.TOKEN', TOKEN_NOUN],
  ['Query.tokens', TOKEN_NOUN],
  ...['create', 'update', 'revoke'].flatMap((verb) => {
    const Verb = verb.slice(0, 1).toUpperCase() + verb.slice(1);
    return [
      [`Mutation.${verb}Token`, TOKEN_NOUN],
      [`${Verb}TokenInput`, TOKEN_NOUN],
      [`${Verb}TokenPayload`, TOKEN_NOUN],
      [`${Verb}TokenPayload.token`, TOKEN_NOUN],
      [`${Verb}TokenResult`, TOKEN_NOUN],
    ] as const;
  }),
  [
    'CreateTokenPayload.secret',
    'Shown once to the ADMIN who makes the token; there is no other way to get it.',
  ],
  ['ReapplyDeploymentInput.forceToken', 'The caller’s own name of a request, never read back.'],
  [
    'EnvironmentVariableInput.secretValue',
    'Carries a value inward, to be refused with its reason; never read back.',
  ],
] as const);

/** Fields of types that hold no row of an object. */
const OTHER_FACTS = new Map([
  [
    'Change.traceId',
    'What the log tells of the change; the column of that name says who wrote an object last.',
  ],
  ['Change.version', 'The version that the change made.'],
  ['CreateTokenPayload.secret', 'Shown once to the ADMIN who makes the token; not the row of that name.'],
  ['ServerInfo.version', 'The version of the software.'],
]);

let schema: GraphQLSchema;
const facts = internalFacts();
beforeAll(() => {
  schema = unboundSchema();
});

describe('the schema', () => {
  it('reaches nothing that schema.prisma marks internal', () => {
    expect(internalReaches(schema, facts, OTHER_FACTS)).toEqual([]);
  });

  it('describes every type, field, argument, enum value and input', () => {
    expect(missingDescriptions(schema)).toEqual([]);
  });

  it('names nothing like an internal fact, but for what is listed', () => {
    expect(forbiddenNames(schema, ALLOWED_NAMES)).toEqual([]);
  });

  it('has a row in the action table for every operation', () => {
    expect(operationsWithoutRow(schema, OPERATIONS)).toEqual([]);
  });

  it('is what schema.graphql says', async () => {
    const committed = await readFile(new URL('../../schema.graphql', import.meta.url), 'utf8');
    expect((await printedSchema()).trimEnd()).toBe(committed.trimEnd());
  });

  it('lets no stream reach what is personal: subscribers of one class share what they are sent', () => {
    const streamed = reachable(schema, schema.getSubscriptionType());
    expect(streamed.has('Deployment')).toBe(true);
    expect([...streamed].filter((name) => ['Viewer', 'Token', 'Query'].includes(name))).toEqual([]);
  });
});

describe('the public columns', () => {
  it('are all columns of schema.prisma that are not marked internal', () => {
    const { datamodel } = getDatamodel();
    for (const [model, columns] of Object.entries(PUBLIC_COLUMNS)) {
      const all = datamodel.models[model]?.fields
        .filter((field) => field.kind !== 'object')
        .map((field) => field.name);
      expect(Object.keys(columns).sort(), model).toEqual(
        all?.filter((name) => !facts.fields.has(`${model}.${name}`)).sort(),
      );
    }
  });

  it('are the columns that commands return', () => {
    const models = {
      runtime: 'Runtime',
      release: 'Release',
      deployment: 'Deployment',
      agent: 'Agent',
      token: 'Token',
      rollout: 'Rollout',
    } as const;
    for (const [table, columns] of Object.entries(TABLES)) {
      const model = models[table as keyof typeof models]; // the same names
      expect(Object.keys(columns).sort(), table).toEqual(Object.keys(PUBLIC_COLUMNS[model]).sort());
    }
  });
});

describe('the walls, each on a schema that breaks it', () => {
  it('catches an internal model behind a cast', () => {
    const problems = broken((builder) => {
      builder.prismaObject('DeploymentInternal', { select: { deploymentId: true }, fields: plainField });
    });
    expect(problems).toContain('DeploymentInternal shows the internal model DeploymentInternal.');
  });

  it('catches a bare select of an internal column, of a twin, and of a twin below a relation', () => {
    const problems = broken((builder) => {
      builder.prismaObject('Deployment', {
        select: { id: true, changeToken: true, internal: true, runtime: { select: { changedBy: true } } },
        fields: plainField,
      });
    });
    expect(problems).toEqual([
      'Deployment selects the internal `Deployment.changeToken`.',
      'Deployment selects the internal `Deployment.internal`.',
      'Deployment selects every column of `Deployment.internal`.',
      'Deployment selects the internal `Runtime.changedBy`.',
    ]);
  });

  it('catches a type without a select, and one that includes', () => {
    const problems = broken((builder) => {
      builder.prismaObject('Deployment', { fields: plainField });
      builder.prismaObject('Runtime', { include: { internal: true }, fields: plainField });
    });
    expect(problems).toContain('Deployment has no select, and so reads every column: name one.');
    expect(problems).toContain('Runtime includes relations, and so reads every column: name a select.');
  });

  it('catches an exposed internal column, on a Prisma type and on one that only holds its row', () => {
    const problems = broken((builder) => {
      const ref = builder.prismaObject('Deployment', { select: { id: true }, fields: plainField });
      builder.objectField(ref, 'by', (t: Any) => t.exposeString('changedBy', { nullable: true }));
      builder.objectRef('Spec').implement({ fields: (t: Any) => ({ why: t.exposeString('changeReason') }) });
    });
    expect(problems).toContain('Deployment.by exposes the internal `changedBy`.');
    expect(problems).toContain('Spec.why exposes the internal `changeReason`.');
  });

  it('catches a relation to an internal twin, and any field that would read an event’s object again', () => {
    const problems = broken((builder) => {
      builder.prismaObject('RuntimeInternal', { select: { runtimeId: true }, fields: plainField });
      builder.prismaObject('Runtime', {
        select: { id: true },
        fields: (t: Any) => ({
          internal: t.relation('internal', { nullable: true }),
          name: t.exposeString('name'),
        }),
      });
    });
    expect(problems).toContain('Runtime.internal leads to the internal model RuntimeInternal.');
    expect(problems.filter((problem) => problem.includes('has a select of its own'))).toHaveLength(2);
  });

  it('has no model for an internal name, even behind a cast on the real builder', () => {
    const builder = createBuilder({ database: { prisma: { $connect: () => Promise.resolve() } } }) as Any;
    expect(() => builder.prismaObject('TokenSecret', { select: { tokenId: true } })).toThrow(/TokenSecret/);
  });

  it('catches what has no description, or one that is no sentence', () => {
    const problems = missingDescriptions(
      buildSchema(`
        """Reads."""
        type Query { one("todo" first: Int): Colour }
        "A colour."
        enum Colour { RED }
        input Wish { what: String }
      `),
    );
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
      'Query.one',
      'Query.one(first:)',
      'Colour.RED',
      'Wish',
      'Wish.what',
    ]);
  });

  it('catches forbidden names wherever they stand, tells words apart, and refuses idle allowances', () => {
    const walked = buildSchema(`
      type Query { release(leaseToken: ID): TokenHash }
      type TokenHash { configFingerprint: String, hashtag: String }
    `);
    const problems = forbiddenNames(walked, new Map([['Query.secret', 'no such field']]));
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
      'Query.release(leaseToken:)',
      'TokenHash',
      'TokenHash.configFingerprint',
      'Query.secret',
    ]);
    expect(namedParts(walked).length).toBeGreaterThan(3);
  });

  it('tells a schema with one field more from the committed one', async () => {
    const committed = await readFile(new URL('../../schema.graphql', import.meta.url), 'utf8');
    const wider = extendSchema(schema, parse('extend type Deployment { changeToken: String }'));
    expect(printSchema(lexicographicSortSchema(wider)).trimEnd()).not.toBe(committed.trimEnd());
    expect(printSchema(lexicographicSortSchema(schema)).trimEnd()).toBe(committed.trimEnd());
  });

  it('catches an operation without a row, and a row without an operation', () => {
    const walked = buildSchema('type Query { a: Int } type Mutation { renewLease: Int }');
    expect(operationsWithoutRow(walked, { 'Query.a': 'x', 'Query.b': 'x' })).toEqual([
      'Mutation.renewLease has no row in OPERATIONS: add who may call it.',
      'Query.b has a row in OPERATIONS and is no operation: take it out.',
    ]);
  });
});

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the point of these schemas is to get past the types
type Any = any;
const plainField = (t: Any) => ({ shown: t.boolean({ resolve: () => true }) });

/** Walks over a schema made without our types and with the whole data model: what a cast makes of ours. */
function broken(define: (builder: Any) => void): string[] {
  const builder: Any = new SchemaBuilder({
    plugins: [PrismaPlugin],
    prisma: { client: { $connect: () => Promise.resolve() }, dmmf: getDatamodel() },
  });
  builder.queryType({ fields: plainField });
  define(builder);
  return internalReaches(builder.toSchema(), facts);
}
