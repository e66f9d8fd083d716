/**
 * The direction rules of src/. Each rule's comment says what to do instead; `test/guard/import-rules.test.ts`
 * holds one import that breaks each of them, so a rule that cannot fail is found.
 */

// `deployments → rollouts, placement, instances → agents, runtimes, releases`: a folder uses later ones only.
const DOMAIN_ORDER = [
  ['deployments'],
  ['rollouts', 'placement', 'instances'],
  ['agents', 'runtimes', 'releases'],
];
const DOMAINS = DOMAIN_ORDER.flat();

/** What each folder may import besides itself. `domains` stands for the domain folders' index.ts. */
const MAY_IMPORT = {
  kernel: [],
  config: ['kernel'],
  store: ['kernel', 'config'],
  // Their schema.ts alone sees graph/: the rule graph-only-from-schema says so.
  access: ['kernel', 'store', 'graph'],
  changes: ['kernel', 'store', 'graph'],
  graph: ['kernel', 'access', 'changes', 'store/public-types.ts'],
  ...Object.fromEntries(
    DOMAINS.map((domain) => [domain, ['kernel', 'config', 'store', 'access', 'changes', 'graph', 'domains']]),
  ),
  adapters: ['kernel', 'domains'],
  messaging: ['kernel', 'changes', 'domains'],
  // Loops act for the server itself: they need grants of their own, and the database that the domains' sweeps take.
  engine: ['kernel', 'config', 'store', 'access', 'changes', 'domains', 'adapters'],
  transport: ['kernel', 'config', 'access', 'graph'],
  client: [],
  cli: ['kernel', 'config', 'client', 'main.ts'],
  demo: ['kernel', 'config', 'client', 'main.ts'],
  dashboard: ['client'],
};

const INSTEAD = {
  kernel: 'The kernel is pure: pass what you need as an argument, or move the code up.',
  config: 'Configuration only parses: hand the value over in main.ts.',
  store: 'The store knows no domain: put the query in that domain’s store.ts or reads.ts.',
  access: 'Access decides from an actor and a table: have the caller load and pass the object.',
  changes: 'The log carries rows of any kind: pass a projection in from main.ts.',
  graph: 'Domain types belong in that domain’s schema.ts; of the store only public-types.ts is for graph/.',
  adapters:
    'An adapter sees a domain through its index.ts; take everything else as a dependency from main.ts.',
  messaging: 'Use a domain’s index.ts and changes/; take everything else as a dependency from main.ts.',
  engine: 'Call a domain’s index.ts; what serves requests is composed in main.ts.',
  transport:
    'Transport runs operations: put the use case in a domain’s commands.ts and reach it by the schema.',
  client: 'The client is published alone and knows the contract only: use generated documents and types.',
  cli: 'A command talks to the server through client/; what runs the server is composed in main.ts.',
  demo: 'The demo talks to the server through client/; what runs the server is composed in main.ts.',
  dashboard: 'The page is a client like any other: use client/.',
};

const alternatives = (names) => names.join('|').replaceAll('.', '\\.');
const ANY_DOMAIN = `(?:${alternatives(DOMAINS)})`;
const COMMANDS = 'commands(?:-apply|-parts|-releases|-rolling|-rollouts)?';
const SCHEMA = 'schema(?:-mutations|-plan|-rollouts|-standing|-streams)?';
const OTHER_FILE = `^src/${ANY_DOMAIN}/(?!(?:internals|store|reads|${COMMANDS}|${SCHEMA}|index)\\.ts$)`;

// A package is matched by its folder, or by its bare name where it is not installed.
const packages = (pattern) => `(?:^|/node_modules/|^node_modules/)(?:${pattern})(?:/|$)`;
const anyPackageBut = (pattern) => `(?:^|/)node_modules/(?!(?:${pattern})/)`;

function targetsOf(names) {
  return names.map((name) => {
    if (name === 'domains') return `^src/${ANY_DOMAIN}/`;
    return name.endsWith('.ts') ? `^src/${alternatives([name])}$` : `^src/${name}/`;
  });
}

const folderRules = Object.entries(MAY_IMPORT).map(([folder, names]) => ({
  name: `folder-${folder}`,
  comment:
    INSTEAD[folder] ??
    'A domain uses the base folders and domains further down; let adapters, engine or transport call it instead.',
  severity: 'error',
  from: { path: `^src/${folder}/`, ...(folder === 'graph' ? { pathNot: '^src/graph/assemble\\.ts$' } : {}) },
  to: { path: '^src/', pathNot: [`^src/${folder}/`, ...targetsOf(names)] },
}));

const orderRules = DOMAIN_ORDER.flatMap((level, depth) =>
  level.map((domain) => {
    const above = DOMAINS.filter(
      (other) => other !== domain && DOMAIN_ORDER.findIndex((names) => names.includes(other)) <= depth,
    );
    return { domain, above };
  }),
)
  .filter(({ above }) => above.length > 0)
  .map(({ domain, above }) => ({
    name: `order-${domain}`,
    comment:
      'Domains use each other only downwards: deployments, then rollouts, placement and instances, then agents, ' +
      'runtimes and releases. Let the upper one call and pass the value, or move the shared type to kernel/.',
    severity: 'error',
    from: { path: `^src/${domain}/` },
    to: { path: `^src/(?:${alternatives(above)})/` },
  }));

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Move what both need into a third file below them; for types, model.ts or kernel/.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      comment:
        'Nothing imports this file and it imports nothing: use it, delete it, or make it an entry point.',
      severity: 'error',
      from: {
        orphan: true,
        path: '^src/',
        pathNot: ['^src/(main|client/(?:index|node)|cli/[^/]+|demo/[^/]+)\\.ts$', '\\.d\\.ts$'],
      },
      to: {},
    },
    {
      name: 'no-unresolved',
      comment:
        'The file or package does not exist: run `npm run generate`, fix the path, or add the package.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-unlisted',
      comment:
        'The package is here only because another one needs it: add it to package.json with an exact version.',
      severity: 'error',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-dev-dependencies',
      comment:
        'A production install has no devDependencies: move the package to dependencies, or the code to test/.',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'src-not-to-test',
      comment: 'Product code knows no test: move what both need into src/, or inject it.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(?:test|bench|\\.config)/' },
    },
    {
      name: 'known-folders',
      comment:
        'A new folder under src/ needs its row in MAY_IMPORT, or its files belong in a folder that has one.',
      severity: 'error',
      from: { path: `^src/(?!main\\.ts$|(?:${alternatives(Object.keys(MAY_IMPORT))})/)` },
      to: {},
    },

    ...folderRules,
    ...orderRules,

    {
      name: 'kernel-no-libraries',
      comment:
        'The kernel does no I/O and knows no library but zod and typeid-js: take the effect as a function.',
      severity: 'error',
      from: { path: '^src/kernel/' },
      to: { path: anyPackageBut('zod|typeid-js') },
    },
    {
      name: 'kernel-no-io',
      comment:
        'The kernel does no I/O (of Node only crypto, util and timers): take the effect as a function.',
      severity: 'error',
      from: { path: '^src/kernel/' },
      to: { dependencyTypes: ['core'], pathNot: '^(?:node:)?(?:crypto|util|timers)(?:/|$)' },
    },

    {
      name: 'domain-through-index',
      comment: 'Import a domain through its index.ts; export there what others may use.',
      severity: 'error',
      from: { path: '^src/([^/]+)' },
      to: {
        path: `^src/${ANY_DOMAIN}/`,
        pathNot: [`^src/$1/`, `^src/${ANY_DOMAIN}/index\\.ts$`, '^src/[^/]+/(?:schema|internals)\\.ts$'],
      },
    },
    {
      name: 'schema-only-from-assemble',
      comment:
        'Only graph/assemble.ts imports a schema.ts: refer to another domain’s types by name or ref in graph/.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/graph/assemble\\.ts$' },
      to: { path: '^src/[^/]+/schema\\.ts$' },
    },
    {
      name: 'assemble-only-schemas',
      comment: 'graph/assemble.ts gathers schema.ts files; values come in as arguments from main.ts.',
      severity: 'error',
      from: { path: '^src/graph/assemble\\.ts$' },
      to: {
        path: '^src/',
        pathNot: [
          '^src/(?:graph|kernel|access|changes)/',
          '^src/store/public-types\\.ts$',
          '^src/[^/]+/schema\\.ts$',
        ],
      },
    },
    {
      name: 'schema-not-to-store',
      comment:
        'A schema.ts reads through reads.ts and writes through commands.ts; types come from store/public-types.ts.',
      severity: 'error',
      from: { path: `^src/([^/]+)/${SCHEMA}\\.ts$` },
      to: {
        path: ['^src/[^/]+/(?:store|internals)\\.ts$', '^src/store/'],
        pathNot: '^src/store/public-types\\.ts$',
      },
    },
    {
      name: 'graph-only-from-schema',
      comment:
        'In a domain only schema.ts knows GraphQL: return an Outcome from kernel/ and translate it in schema.ts.',
      severity: 'error',
      from: {
        path: `^src/(?:${ANY_DOMAIN}|access|changes)/`,
        pathNot: `^src/[^/]+/${SCHEMA}\\.ts$`,
      },
      to: { path: '^src/graph/' },
    },
    {
      name: 'internals-only-in-own-folder',
      comment: 'What is internal to a domain stays there: ask for a public fact through its index.ts.',
      severity: 'error',
      from: { path: '^src/([^/]+)' },
      to: { path: '^src/[^/]+/internals\\.ts$', pathNot: '^src/$1/' },
    },
    {
      name: 'internals-only-from-store-and-commands',
      comment: 'Only store.ts and commands.ts may see internals.ts: everything else could show it to a user.',
      severity: 'error',
      from: { path: '^src/([^/]+)/', pathNot: `^src/[^/]+/(?:store|${COMMANDS})\\.ts$` },
      to: { path: '^src/$1/internals\\.ts$' },
    },
    {
      name: 'model-imports-kernel-only',
      comment:
        'model.ts and the further files of a domain are pure and import kernel/ and each other: pass loaded values in, ' +
        'do effects in commands.ts.',
      severity: 'error',
      from: { path: OTHER_FILE },
      to: { path: '^src/', pathNot: ['^src/kernel/', OTHER_FILE] },
    },
    {
      name: 'internals-import-model-only',
      comment:
        'internals.ts holds types and zod schemas: it imports kernel/ and its model.ts, nothing that acts.',
      severity: 'error',
      from: { path: `^src/${ANY_DOMAIN}/internals\\.ts$` },
      to: { path: '^src/', pathNot: ['^src/kernel/', OTHER_FILE] },
    },
    {
      name: 'model-no-libraries',
      comment:
        'A model is plain functions over plain data (zod for shapes): put the library behind kernel/ or commands.ts.',
      severity: 'error',
      from: { path: [OTHER_FILE, `^src/${ANY_DOMAIN}/internals\\.ts$`] },
      to: { path: anyPackageBut('zod') },
    },
    {
      name: 'model-no-io',
      comment:
        'A model does no I/O and takes time and randomness as arguments: move the effect to commands.ts.',
      severity: 'error',
      from: { path: [OTHER_FILE, `^src/${ANY_DOMAIN}/internals\\.ts$`] },
      to: { dependencyTypes: ['core'] },
    },

    {
      name: 'prisma-only-in-stores',
      comment:
        'The database is reached from store/, */store.ts and */reads.ts: add a function there and call it.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/store/', '^src/.+/(?:store|reads)\\.ts$'] },
      to: { path: ['^src/store/generated/', packages('@prisma/[^/]+|prisma|pg')] },
    },
    {
      name: 'graphql-only-in-graph',
      comment:
        'GraphQL is known in graph/, */schema.ts, transport/ and client/: return plain data and translate there.',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: ['^src/(?:graph|transport|client)/', `^src/[^/]+/${SCHEMA}\\.ts$`],
      },
      to: { path: packages('graphql|@pothos/[^/]+') },
    },
    {
      name: 'wire-only-in-transport',
      comment:
        'Yoga and WebSockets are known in transport/ and client/: give transport a plain function to call.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(?:transport|client)/' },
      to: { path: packages('graphql-yoga|graphql-ws|ws|@graphql-yoga/[^/]+|@escape\\.tech/[^/]+') },
    },
    {
      name: 'client-few-libraries',
      comment:
        'Whoever installs the client installs what it imports: only graphql-ws, ws and typed-document types.',
      severity: 'error',
      from: { path: '^src/client/' },
      to: {
        path: anyPackageBut('graphql-ws|ws|@graphql-typed-document-node/core'),
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'client-runs-in-browsers',
      comment:
        'The client also runs in browsers: use web standards (fetch, URL, crypto.subtle), or move it to cli/.',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { dependencyTypes: ['core'] },
    },
  ],

  options: {
    doNotFollow: { path: ['node_modules', '^src/store/generated/', '^src/client/generated/'] },
    // Type-only imports tie files together as much as others do.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
    skipAnalysisNotInRules: true,
  },
};
