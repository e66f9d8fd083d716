import { addConnectionType, pageArguments, pageComplexity, readConnection } from '../graph/connection.js';
import { addEnum } from '../graph/enum.js';
import { grantOf, type Graph } from '../graph/graph.js';
import { INPUT_WORDS } from '../graph/input-words.js';
import { reads } from '../graph/reading/declare.js';
import { beside } from '../graph/reading/fields.js';
import { addMutation, addPayload } from '../graph/mutation.js';
import type { Actor, Role } from './actor.js';
import { TOKEN_NAME_MAX, TOKEN_NAMESPACES_MAX } from './token-model.js';
import type { CreatedToken, TokenCommands } from './tokens.js';

/** Who asks, and API tokens. */
export function addAccessSchema(graph: Graph, commands: TokenCommands): void {
  const role = addEnum<Role>(graph.builder, 'Role', 'What a token may do, in its namespaces.', {
    VIEWER: 'Read and watch.',
    DEPLOYER: 'Beside that: releases and deployments; what a build pipeline needs.',
    OPERATOR: 'Beside that: runtimes, cordoning agents, detaching deployments.',
    CONTROLLER: 'Read, and report what became of deployments on external runtimes.',
    AGENT: 'Speak for one agent: register, beat, deregister.',
    ADMIN: 'Everything, tokens included.',
  });
  addViewer(graph, role);
  addTokenFields(graph, role);
  addTokenMutations(graph, role, commands);
}

type RoleRef = ReturnType<typeof addEnum<Role>>;

/** Personal: no subscription may reach it, since subscribers of one class share what they are sent. A guard test looks. */
function addViewer({ builder }: Graph, role: RoleRef): void {
  const viewer = builder.objectRef<Actor>('Viewer').implement({
    description: 'Who asks, and what they may do.',
    fields: (t) => ({
      id: t.exposeString('id', {
        description: 'As changes name it: `token:<id>`, or `local` on a server without access control.',
      }),
      name: t.exposeString('name', { description: 'The name of the token, or `local`.' }),
      roles: t.field({ type: [role], description: 'The roles.', resolve: (actor) => [...actor.roles] }),
      namespaces: t.field({
        type: ['String'],
        nullable: true,
        description: 'The namespaces that may be seen; null means all.',
        resolve: ({ namespaces }) => (namespaces === 'all' ? null : [...namespaces].sort()),
      }),
      agentName: t.exposeString('agentName', {
        nullable: true,
        description:
          'The agent that the role AGENT speaks for; a trailing `*` makes it a prefix. Null without that role.',
      }),
      expiresAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When this ends; null if it does not.',
        resolve: (actor) => actor.expiresAt,
      }),
    }),
  });
  builder.queryField('viewer', (t) =>
    t.field({
      type: viewer,
      description: 'Who asks, and what they may do.',
      resolve: (_root, _args, { caller }) => caller.actor,
    }),
  );
}

type Row = Graph['types']['Token']['$inferType'];

function addTokenFields(graph: Graph, role: RoleRef): void {
  const { builder, types, shared } = graph;
  builder.objectFields(types.Token, (t) => ({
    id: t.exposeID('id', { description: 'A TypeID such as `tok_01h455vb4pex5vsknk084sn02q`.' }),
    name: t.exposeString('name', { description: 'What it is called; need not be unique.' }),
    roles: t.field({
      type: [role],
      description: 'What it may do, at least one.',
      ...reads<Row>('roles'),
      resolve: (token) => [...token.roles],
    }),
    namespaces: t.exposeStringList('namespaces', {
      description: 'The namespaces it may see; `*` alone means all.',
    }),
    agentName: t.exposeString('agentName', {
      nullable: true,
      description:
        'The agent that the role AGENT speaks for; a trailing `*` makes it a prefix. Null without that role.',
    }),
    createdBy: t.exposeString('createdBy', { description: 'Who created it, as changes name it.' }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it ends; null if it does not.',
    }),
    revokedAt: t.expose('revokedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was revoked; null if it was not.',
    }),
    version: t.exposeInt('version', { description: 'Counts every change, from 1. Use counts as none.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    lastUsedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it was last used, to the minute; null if never.',
      ...beside<Date>(graph, 'lastUsedAt'),
    }),
  }));
  const connection = addConnectionType(builder, 'Token', types.Token);
  builder.queryField('tokens', (t) =>
    t.field({
      type: connection,
      description: 'API tokens, revoked and expired ones too. Needs ADMIN.',
      complexity: pageComplexity,
      args: {
        ...pageArguments(t.arg),
        orderBy: t.arg({ type: shared.order, description: 'In which order. Null: oldest first.' }),
      },
      resolve: (_root, args, context, info) => {
        grantOf(context, 'token:read');
        return readConnection(
          graph,
          { table: 'token', namespaces: 'all', deleted: false },
          args,
          context,
          info,
        );
      },
    }),
  );
}

function addTokenMutations({ builder, types }: Graph, role: RoleRef, commands: TokenCommands): void {
  const created = builder.objectRef<CreatedToken>('CreateTokenPayload').implement({
    description: '`createToken` was carried out.',
    fields: (t) => ({
      token: t.field({ type: types.Token, description: 'The new token.', resolve: (done) => done.token }),
      secret: t.exposeString('secret', {
        description:
          'What a client sends as `Authorization: Bearer …`. Shown this once; only its hash is kept.',
      }),
    }),
  });
  const words = {
    name: `What it is called, 1 to ${TOKEN_NAME_MAX} characters.`,
    roles: 'What it may do, at least one. Nobody gives more than they have.',
    namespaces: `The namespaces it may see, at most ${TOKEN_NAMESPACES_MAX}; \`*\` alone means all.`,
    agentName: 'The agent that the role AGENT speaks for; a trailing `*` makes it a prefix.',
  };
  addMutation(builder, 'createToken', {
    description: 'Makes an API token. Needs ADMIN.',
    object: 'TOKEN',
    input: builder.inputType('CreateTokenInput', {
      description: 'What the token may do.',
      fields: (t) => ({
        name: t.string({ required: true, description: words.name }),
        roles: t.field({ type: [role], required: true, description: words.roles }),
        namespaces: t.stringList({ description: `${words.namespaces} Null: all that the caller has.` }),
        agentName: t.string({ description: `${words.agentName} Null without that role.` }),
        expiresAt: t.field({ type: 'DateTime', description: 'When it ends. Null: never.' }),
      }),
    }),
    payload: created,
    failures: ['InvalidInput'],
    run: (caller, value) => commands.createToken(caller, value),
  });
  addMutation(builder, 'updateToken', {
    description: 'Changes what an API token may do, also for streams that are open with it. Needs ADMIN.',
    object: 'TOKEN',
    input: builder.inputType('UpdateTokenInput', {
      description: 'What is left out stays as it is.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which token. A revoked one cannot be changed.' }),
        name: t.string({ description: `${words.name} Null: as it is.` }),
        roles: t.field({ type: [role], description: `${words.roles} Null: as they are.` }),
        namespaces: t.stringList({ description: `${words.namespaces} Null: as they are.` }),
        agentName: t.string({ description: `${words.agentName} Null takes it away; left out, it stays.` }),
        expiresAt: t.field({
          type: 'DateTime',
          description: 'When it ends. Null: never; left out, as it is.',
        }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
      }),
    }),
    payload: addPayload(builder, 'updateToken', 'token', types.Token, 'The token as it is now.'),
    failures: ['NotFound', 'VersionConflict', 'InvalidInput'],
    run: (caller, value) => commands.updateToken(caller, value),
  });
  addMutation(builder, 'revokeToken', {
    description:
      'Ends an API token for good, and the streams that are open with it. Asking again succeeds. Needs ADMIN.',
    object: 'TOKEN',
    input: builder.inputType('RevokeTokenInput', {
      description: 'Which token to end.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which token.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
      }),
    }),
    payload: addPayload(builder, 'revokeToken', 'token', types.Token, 'The token as it is now.'),
    failures: ['NotFound', 'VersionConflict', 'InvalidInput'],
    run: (caller, value) => commands.revokeToken(caller, value),
  });
}
