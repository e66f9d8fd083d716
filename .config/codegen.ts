import type { CodegenConfig } from '@graphql-codegen/cli';

/**
 * Types and documents of the client, from the committed contract. It reads no server code, so the client
 * can be generated, built and published without one.
 */
const config: CodegenConfig = {
  schema: 'schema.graphql',
  documents: ['src/client/**/*.graphql', 'src/client/documents.ts', '!src/client/generated/**'],
  ignoreNoDocuments: false,
  generates: {
    'src/client/generated/': {
      preset: 'client',
      presetConfig: {
        // The client hands whole objects on; masking would make each caller unmask them.
        fragmentMasking: false,
        // The hash travels with the document and the list is what a server in `enforce` mode accepts.
        persistedDocuments: { mode: 'embedHashInDocument', hashAlgorithm: 'sha256' },
      },
      config: {
        // Documents as text: who installs the client installs no `graphql`.
        documentMode: 'string',
        enumsAsTypes: true,
        immutableTypes: true,
        useTypeImports: true,
        importExtension: '.js',
        strictScalars: true,
        scalars: {
          ID: 'string',
          DateTime: 'string',
          ChangeCursor: 'string',
          JSON: 'unknown',
          JSONObject: 'Readonly<Record<string, unknown>>',
          Labels: 'Readonly<Record<string, string>>',
        },
      },
    },
  },
};

export default config;
