import { addConnectionType, pageArguments, pageComplexity, readConnection } from '../graph/connection.js';
import type { Context } from '../graph/context.js';
import { addEnum } from '../graph/enum.js';
import { operationError } from '../graph/errors.js';
import { addFilter, parseFilter } from '../graph/filter-input.js';
import { grantOf, type Graph } from '../graph/graph.js';
import { reads } from '../graph/reading/declare.js';
import { storedJson } from '../graph/stored-json.js';
import { DEFAULT_NAMESPACE } from '../kernel/names.js';
import type { ReleaseCommands } from './commands.js';
import { releaseFilterSchema, type ReleaseFilter, type ReleaseFilterField } from './filter.js';
import type { ReleaseResource, ReleaseSource, Reschedule, ResourceLifecycle } from './model.js';
import { releasesWanted } from './reads.js';
import { addReleaseMutations } from './schema-mutations.js';

/** Releases in the graph: the object, its look-up and lists. Mutations: `schema-mutations.ts`. */
export function addReleaseSchema(graph: Graph, commands: ReleaseCommands): void {
  const { builder } = graph;
  const lifecycle = addEnum<ResourceLifecycle>(builder, 'ResourceLifecycle', 'How long a resource lives.', {
    FROZEN: 'It outlives releases and undeploying: data, say.',
    LIVE: 'It comes and goes with what is deployed.',
  });
  const reschedule = addEnum<Reschedule>(
    builder,
    'Reschedule',
    'Whether a resource may be moved elsewhere when its place is lost.',
    {
      NEVER: 'It stays where it is.',
      ALLOWED: 'It may be moved.',
    },
  );
  addFields(graph, { lifecycle, reschedule });
  addQueries(graph);
  addReleaseMutations(graph, { lifecycle, reschedule }, commands);
}

interface Enums {
  readonly lifecycle: ReturnType<typeof addEnum<ResourceLifecycle>>;
  readonly reschedule: ReturnType<typeof addEnum<Reschedule>>;
}

type Row = Graph['types']['Release']['$inferType'];

function addFields(graph: Graph, enums: Enums): void {
  const { builder, types } = graph;
  const resource = resourceType(graph, enums);
  const source = sourceType(graph);
  builder.objectFields(types.Release, (t) => ({
    id: t.exposeID('id', { description: 'A TypeID such as `rel_01h455vb4pex5vsknk084sn02q`.' }),
    namespace: t.exposeString('namespace', { description: 'The namespace.' }),
    app: t.exposeString('app', { description: 'The app that it is a release of.' }),
    label: t.exposeString('label', {
      description: 'What it is called: a version, mostly. Unique for the app, for good.',
    }),
    description: t.exposeString('description', {
      nullable: true,
      description: 'What is in it, for people; null if nothing was said.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'When it was created. Releases never change.',
    }),
    updatedAt: t.expose('updatedAt', {
      type: 'DateTime',
      description: 'The same as `createdAt`: releases never change.',
    }),
    resources: t.field({
      type: [resource],
      description: 'What it consists of, at least one.',
      ...reads<Row>('resources'),
      resolve: (row) => [...storedJson<readonly ReleaseResource[]>(row.resources)],
    }),
    source: t.field({
      type: source,
      nullable: true,
      description: 'Where it was built from; null if nothing was said.',
      ...reads<Row>('source'),
      resolve: (row) => storedJson<ReleaseSource | null>(row.source),
    }),
  }));
}

function resourceType({ builder }: Graph, enums: Enums) {
  return builder.objectRef<ReleaseResource>('Resource').implement({
    description: 'One part of a release.',
    fields: (t) => ({
      name: t.exposeString('name', { description: 'Its name, unique in the release.' }),
      serviceType: t.exposeString('serviceType', {
        description: 'What kind of service it is: who can carry it out.',
      }),
      spec: t.expose('spec', {
        type: 'JSONObject',
        description: 'What it is to be; its meaning is the service type’s own. Empty if nothing.',
      }),
      requires: t.field({
        type: ['String'],
        description: 'Names of resources of the same release that must be ready first.',
        resolve: (one) => [...one.requires],
      }),
      lifecycle: t.field({
        type: enums.lifecycle,
        description: 'How long it lives.',
        resolve: (one) => one.lifecycle,
      }),
      reschedule: t.field({
        type: enums.reschedule,
        description: 'Whether it may be moved.',
        resolve: (one) => one.reschedule,
      }),
    }),
  });
}

function sourceType({ builder }: Graph) {
  const fact = (what: string) => ({
    nullable: true as const,
    description: `${what} Null if it was not said.`,
  });
  return builder.objectRef<ReleaseSource>('ReleaseSource').implement({
    description: 'Where a release was built from, as whoever built it says.',
    fields: (t) => ({
      sha: t.exposeString('sha', fact('The commit.')),
      branch: t.exposeString('branch', fact('The branch.')),
      repository: t.exposeString('repository', fact('The repository.')),
      dirty: t.exposeBoolean('dirty', fact('Whether there were changes beside the commit.')),
      message: t.exposeString('message', fact('The message of the commit.')),
      author: t.exposeString('author', fact('The author of the commit.')),
    }),
  });
}

function addQueries(graph: Graph): void {
  const { builder, types, shared, reader } = graph;
  const connection = addConnectionType(builder, 'Release', types.Release);
  const { text } = shared.filters;
  const filter = addFilter<ReleaseFilterField>(
    builder,
    shared.filters,
    'Release',
    {
      namespace: { type: text, description: 'The namespace.' },
      app: { type: text, description: 'The app.' },
      label: { type: text, description: 'The label.' },
    },
    false,
  );
  builder.queryFields((t) => ({
    release: t.field({
      type: types.Release,
      nullable: true,
      description:
        'One release, by id or by namespace, app and label; null if there is none that the caller may see.',
      args: {
        id: t.arg.id({ description: 'The id of the release. Null: look it up by app and label.' }),
        namespace: t.arg.string({
          description: `Where it is looked up. Null: \`${DEFAULT_NAMESPACE}\`. Not together with \`id\`.`,
        }),
        app: t.arg.string({ description: 'The app, together with `label`. Null: look it up by id.' }),
        label: t.arg.string({ description: 'The label, together with `app`. Null: look it up by id.' }),
      },
      resolve: (_root, { id, namespace, app, label }, context, info) => {
        const named = typeof app === 'string' && typeof label === 'string';
        const nothingElse = [namespace, app, label].every((value) => typeof value !== 'string');
        if (typeof id === 'string' && nothingElse) return reader.byId('RELEASE', id, context, info);
        if (typeof id === 'string' || !named) {
          throw operationError(
            'BAD_USER_INPUT',
            'Give either `id`, or `app` and `label` with or without `namespace`.',
          );
        }
        const wanted = {
          namespace: { equals: namespace ?? DEFAULT_NAMESPACE },
          app: { equals: app },
          label: { equals: label },
        };
        return reader.first(wantedOf(context, wanted), context, info);
      },
    }),
    releases: t.field({
      type: connection,
      description: 'The releases that the caller may see.',
      complexity: pageComplexity,
      args: {
        ...pageArguments(t.arg),
        filter: t.arg({ type: filter, description: 'Which ones. Null: all.' }),
        orderBy: t.arg({ type: shared.creationOrder, description: 'In which order. Null: oldest first.' }),
      },
      resolve: (_root, args, context, info) =>
        readConnection(graph, wantedOf(context, args.filter), args, context, info),
    }),
  }));
}

function wantedOf(context: Context, filter: ReleaseFilter | null | undefined) {
  return releasesWanted(parseFilter(releaseFilterSchema, filter), grantOf(context, 'release:read'));
}
