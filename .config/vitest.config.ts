import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitest/config';

import { SummaryReporter } from './summary-reporter.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const isCi = process.env.CI === 'true';

export default defineConfig({
  root,
  resolve: {
    // graphql 16 ships each module twice, as CommonJS and as ESM, and compares classes with `instanceof`.
    // Node gives the CommonJS copy to every package; Vite would give our own files the ESM one.
    // Subpaths need no alias: `graphql/…/x.js` is already CommonJS, and no other form compiles.
    alias: [{ find: /^graphql$/, replacement: `${root}node_modules/graphql/index.js` }],
  },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Tests wait on sockets and on PostgreSQL more than they compute; but live tests start further
    // server processes, so more than one worker for each core makes their deadlines unreliable.
    fileParallelism: true,
    maxWorkers: Math.max(2, Math.min(4, availableParallelism())),
    testTimeout: 30_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    retry: 0,
    passWithNoTests: false,
    allowOnly: false,
    // GraphQL answers hold null-prototype objects and long texts: a cut diff hides the difference.
    diff: { truncateThreshold: 200 },
    reporters: [isCi ? 'verbose' : 'default', new SummaryReporter()],
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      exclude: ['src/store/generated/**', 'src/client/generated/**'],
      reporter: ['text-summary', 'html'],
      reportsDirectory: 'coverage',
    },
  },
});
