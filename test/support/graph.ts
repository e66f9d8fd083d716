/** The built schema over a real database, executed by graphql-js itself: no transport, no pipeline. */
import { execute, parse, validate, type ExecutionResult, type GraphQLSchema } from 'graphql';
import type pg from 'pg';

import { classKey, localActor, type Actor, type Rights } from '../../src/access/actor.js';
import type { Caller } from '../../src/access/caller.js';
import { buildGraph, type GraphDeps } from '../../src/graph/assemble.js';
import { contextFactory, type Context } from '../../src/graph/context.js';
import { maskError } from '../../src/graph/errors.js';
import { systemClock } from '../../src/kernel/clock.js';
import { openDatabase, type Database } from '../../src/store/database.js';
import { makePool } from '../../src/store/pool.js';
import { publicReads } from '../../src/store/public-reads.js';
import { createDatabase, type TestDatabase } from './database.js';
import { startTestFeed } from './feed.js';

export interface TestGraph {
  readonly schema: GraphQLSchema;
  readonly database: Database;
  readonly testDatabase: TestDatabase;
  readonly deps: GraphDeps;
  contextOf(actor?: Actor): Context;
  /** Executes and masks as a transport would. Throws what does not validate: tests ask valid questions. */
  run(document: string, variables?: Record<string, unknown>, actor?: Actor): Promise<Answer>;
  /** Statements that the read role was sent since the last call. */
  statements(): string[];
  close(): Promise<void>;
}
export interface Answer {
  readonly data: Record<string, any> | null | undefined; // eslint-disable-line @typescript-eslint/no-explicit-any -- answers are as wide as the documents of tests
  readonly errors: readonly { readonly message: string; readonly code: unknown; readonly path: unknown }[];
}
