/** What must not compile in a `schema.ts`: the wall of types. Checked by `tsc` with everything else; nothing here runs. */
import type { Builder } from '../../src/graph/graph-types.js';
import { PUBLIC_COLUMNS, type PublicPrismaTypes } from '../../src/store/public-types.js';

declare const builder: Builder;

// @ts-expect-error an internal model has no name here
builder.prismaObject('DeploymentInternal', { select: { deploymentId: true } });

// @ts-expect-error the secret of a token has no name here
builder.prismaObject('TokenSecret', { select: { tokenId: true } });

// @ts-expect-error the payload of changes has no name here
builder.prismaObject('ChangePayload', { select: { seq: true } });

// @ts-expect-error a bookkeeping column cannot be selected
builder.prismaObject('Deployment', { select: { id: true, changeToken: true } });

// @ts-expect-error the relation to the internal twin cannot be selected
builder.prismaObject('Deployment', { select: { id: true, internal: true } });

const deployment = builder.prismaObject('Deployment', {
  select: PUBLIC_COLUMNS.Deployment,
  fields: (t) => ({
    name: t.exposeString('name'),
    // @ts-expect-error an internal column
    changeToken: t.exposeString('changeToken'),
    // @ts-expect-error an internal column
    changedBy: t.exposeString('changedBy'),
    // @ts-expect-error the relation to the internal twin
    internal: t.relation('internal'),
    runtime: t.relation('runtime'),
  }),
});

builder.objectFields(deployment, (t) => ({
  app: t.exposeString('app'),
  // @ts-expect-error an internal column
  token: t.exposeString('changeToken'),
  // @ts-expect-error a row has no internal column to resolve to
  by: t.string({ resolve: (row, _args, _context, _info) => row.changedBy }),
  // @ts-expect-error a row has no internal twin
  internal: t.string({ resolve: (row, _args, _context, _info) => row.internal.data }),
}));

builder.prismaObject('Agent', {
  select: PUBLIC_COLUMNS.Agent,
  fields: (t) => ({
    liveness: t.relation('liveness', { nullable: true }),
    // @ts-expect-error the session and the sequence
    internal: t.relation('internal'),
  }),
});

builder.prismaObject('Release', {
  select: PUBLIC_COLUMNS.Release,
  fields: (t) => ({
    // @ts-expect-error releases never change: their version is bookkeeping
    version: t.exposeInt('version'),
  }),
});

// A related object has the public columns, and no more.
declare const runtime: PublicPrismaTypes['Deployment']['Relations']['runtime']['Shape'];
export const known: string = runtime.name;
// @ts-expect-error an internal column of a related object
export const hidden: unknown = runtime.changeToken;
