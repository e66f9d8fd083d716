import graphqlPlugin from '@graphql-eslint/eslint-plugin';
import { fileURLToPath } from 'node:url';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

import { needsReason } from './eslint-rules/needs-reason.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const TS = ['src/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts', '.config/**/*.ts', 'prisma.config.ts'];

// `no-restricted-syntax` is one rule: a later block replaces the list of an earlier one. So each block
// below names all its restrictions, built from these parts.
const clock = [
  "CallExpression[callee.object.name='Date'][callee.property.name='now']",
  "NewExpression[callee.name='Date'][arguments.length=0]",
  "CallExpression[callee.name='Date']",
].map((selector) => ({
  selector,
  message: 'Take the time from the `Clock` in your deps (kernel/clock.ts), so that tests can move it.',
}));

const environment = [
  "MemberExpression[object.name='process'][property.name='env']",
  "MemberExpression[object.name='process'][property.value='env']",
  "VariableDeclarator[init.name='process'] Property[key.name='env']",
  "ImportDeclaration[source.value=/^(node:)?process$/] ImportSpecifier[imported.name='env']",
].map((selector) => ({
  selector,
  message:
    'Read settings from `Config` (config/), which validates them and redacts secrets; add a field there.',
}));

const exports = ['ExportDefaultDeclaration', "ExportSpecifier[exported.name='default']"].map((selector) => ({
  selector,
  message: 'Export by name: a name is found by search and stays the same in every importer.',
}));

const enums = [
  {
    selector: 'TSEnumDeclaration',
    message:
      'Use a string union: `export const PHASES = [...] as const; type Phase = (typeof PHASES)[number]`.',
  },
];

const copies = [
  {
    selector: "CallExpression[callee.object.name='z'][callee.property.name='json']",
    message:
      'A copy that zod makes loses the key `__proto__`: use `jsonObjectSchema` or `storedObjectSchema` (kernel/json.ts).',
  },
];

const skippedTests = [
  'MemberExpression[object.name=/^(it|test|describe|suite|bench)$/][property.name=/^(only|skip|todo|skipIf|runIf|fails)$/]',
  'MemberExpression[object.object.name=/^(it|test|describe|suite|bench)$/][property.name=/^(only|skip|todo|skipIf|runIf|fails)$/]',
  'CallExpression[callee.object.name=/^(context|ctx|t|task)$/][callee.property.name=/^(skip|todo)$/]',
  'CallExpression[callee.name=/^(it|test|describe|suite)$/] > ObjectExpression > Property[key.name=/^(only|skip|todo|fails|retry)$/]',
].map((selector) => ({
  selector,
  message: 'Every test runs, everywhere: fix it, make what it needs available in test/support, or delete it.',
}));

export default defineConfig([
  globalIgnores([
    'dist/',
    'coverage/',
    '.slipway/',
    'src/store/generated/',
    'src/client/generated/',
    // Plain text and SQL need no lint; a folder that is not walked costs nothing.
    'prisma/migrations/',
  ]),
  { linterOptions: { reportUnusedDisableDirectives: 'error', reportUnusedInlineConfigs: 'error' } },

  // Core rules for everything that runs.
  {
    files: ['**/*.{ts,js,mjs,cjs}'],
    rules: {
      'array-callback-return': 'error',
      'constructor-super': 'error',
      curly: ['error', 'multi-line'],
      eqeqeq: 'error',
      'for-direction': 'error',
      'no-async-promise-executor': 'error',
      'no-compare-neg-zero': 'error',
      'no-cond-assign': 'error',
      'no-constant-binary-expression': 'error',
      'no-constant-condition': ['error', { checkLoops: 'allExceptWhileTrue' }],
      'no-control-regex': 'error',
      'no-debugger': 'error',
      'no-dupe-else-if': 'error',
      'no-duplicate-case': 'error',
      'no-empty': 'error',
      'no-eval': 'error',
      'no-fallthrough': 'error',
      'no-loss-of-precision': 'error',
      'no-misleading-character-class': 'error',
      'no-promise-executor-return': 'error',
      'no-prototype-builtins': 'error',
      'no-self-assign': 'error',
      'no-self-compare': 'error',
      'no-sparse-arrays': 'error',
      'no-template-curly-in-string': 'error',
      'no-unmodified-loop-condition': 'error',
      'no-unreachable-loop': 'error',
      'no-unsafe-finally': 'error',
      'no-unsafe-negation': 'error',
      'no-unsafe-optional-chaining': 'error',
      'no-useless-catch': 'error',
      'no-useless-escape': 'error',
      'no-useless-rename': 'error',
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
      'require-yield': 'error',
      'use-isnan': 'error',
      'valid-typeof': 'error',
    },
  },

  // TypeScript: the rules that find bugs. Formatting is prettier's, imports are dependency-cruiser's,
  // unused exports are knip's, unresolved names are tsc's.
  {
    files: TS,
    plugins: { '@typescript-eslint': tseslint.plugin, local: { rules: { 'needs-reason': needsReason } } },
    languageOptions: {
      parser: tseslint.parser,
      // One program for the whole repository, built once: cheaper than a language service for a single run.
      parserOptions: { project: ['./tsconfig.json'], tsconfigRootDir: root },
    },
    rules: {
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/ban-ts-comment': [
        'error',
        { 'ts-expect-error': 'allow-with-description', minimumDescriptionLength: 8 },
      ],
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'separate-type-imports', disallowTypeAnnotations: false },
      ],
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/no-array-delete': 'error',
      '@typescript-eslint/no-base-to-string': 'error',
      '@typescript-eslint/no-duplicate-type-constituents': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': ['error', { checkThenables: true }],
      '@typescript-eslint/no-for-in-array': 'error',
      '@typescript-eslint/no-implied-eval': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-namespace': 'error',
      '@typescript-eslint/no-require-imports': 'error',
      '@typescript-eslint/no-this-alias': 'error',
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/no-unused-expressions': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'all', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/prefer-promise-reject-errors': 'error',
      '@typescript-eslint/restrict-plus-operands': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      // A promise returned from inside `try` without `await` escapes the `catch`.
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        // A `default` arm would swallow the next phase that someone adds.
        { allowDefaultCaseForExhaustiveSwitch: false, considerDefaultExhaustiveForUnions: false },
      ],
      'no-restricted-syntax': ['error', ...enums],
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^graphql/',
              message:
                "Import from 'graphql': a subpath can load a second instance, which breaks `instanceof`.",
            },
          ],
        },
      ],
    },
  },

  {
    files: ['src/**/*.ts'],
    rules: {
      'local/needs-reason': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'no-console': 'error',
      'no-restricted-syntax': ['error', ...clock, ...environment, ...exports, ...enums, ...copies],
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      '@typescript-eslint/no-unsafe-argument': 'error',
      '@typescript-eslint/no-unsafe-assignment': 'error',
      '@typescript-eslint/no-unsafe-call': 'error',
      '@typescript-eslint/no-unsafe-member-access': 'error',
      '@typescript-eslint/no-unsafe-return': 'error',
    },
  },
  {
    files: ['src/kernel/clock.ts'],
    rules: { 'no-restricted-syntax': ['error', ...environment, ...exports, ...enums, ...copies] },
  },
  {
    files: ['src/config/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', ...clock, ...exports, ...enums, ...copies] },
  },
  { files: ['src/cli/**/*.ts'], rules: { 'no-console': 'off' } },
  {
    files: ['test/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', ...skippedTests, ...enums],
      // `expect(x).rejects` and friends read better without a type dance around values under test.
      '@typescript-eslint/no-base-to-string': 'off',
    },
  },
  {
    // What must not compile is written as a statement, and its value is never used.
    files: ['test/types/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unused-expressions': 'off',
      '@typescript-eslint/no-unused-vars': 'off',
      '@typescript-eslint/no-floating-promises': 'off',
    },
  },

  // The public contract.
  {
    files: ['schema.graphql'],
    plugins: { '@graphql-eslint': graphqlPlugin },
    languageOptions: {
      parser: graphqlPlugin.parser,
      parserOptions: { graphQLConfig: { schema: 'schema.graphql' } },
    },
    rules: {
      '@graphql-eslint/require-description': [
        'error',
        { types: true, FieldDefinition: true, EnumValueDefinition: true, InputValueDefinition: true },
      ],
      '@graphql-eslint/description-style': 'error',
      '@graphql-eslint/require-deprecation-reason': 'error',
      '@graphql-eslint/no-unreachable-types': 'error',
      '@graphql-eslint/no-hashtag-description': 'error',
      '@graphql-eslint/naming-convention': [
        'error',
        {
          types: 'PascalCase',
          FieldDefinition: 'camelCase',
          InputValueDefinition: 'camelCase',
          Argument: 'camelCase',
          EnumValueDefinition: 'UPPER_CASE',
        },
      ],
    },
  },
]);
