import type { Feed } from '../changes/feed.js';
import type { Clock } from '../kernel/clock.js';
import type { PublicReads } from '../store/public-types.js';
import type { PrismaHandle } from './builder.js';
import type { Builder } from './graph-types.js';
import type { ObjectTypes } from './object-types.js';

/** What the graph is built from. Its resolvers reach the database through `reads` and through commands, never else. */
export interface GraphDeps {
  /** For Pothos alone. */
  readonly database: { readonly prisma: PrismaHandle };
  /** Every read of a resolver: `publicReads(database)`. */
  readonly reads: PublicReads;
  readonly feed: Feed;
  readonly clock: Clock;
  readonly server: ServerFacts;
}

/** What the server says of itself, beside what the graph knows. */
export interface ServerFacts {
  readonly version: string;
  readonly startedAt: Date;
  /** Whether operations need a token. */
  readonly accessControl: boolean;
}

/** What every domain's `schema.ts` gets to add its part with. */
export interface Graph {
  readonly builder: Builder;
  readonly types: ObjectTypes;
  readonly reads: PublicReads;
  readonly feed: Feed;
}
