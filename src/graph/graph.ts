import { authorise } from '../access/authorise.js';
import type { Action } from '../access/actions.js';
import { ForbiddenError } from '../access/errors.js';
import type { Grant } from '../access/grant.js';
import type { Feed } from '../changes/feed.js';
import type { Clock } from '../kernel/clock.js';
import { OBJECT_KINDS, type ObjectKind } from '../kernel/ids.js';
import type { ChangeTypes } from './change-types.js';
import type { Context } from './context.js';
import type { Builder } from './graph-types.js';
import { READ_ACTION } from './reading/declare.js';
import type { Reader } from './reading/reader.js';
import type { ObjectTypes } from './object-types.js';
import type { SharedTypes } from './shared-types.js';
import type { StreamTypes } from './stream-types.js';

/** What every domain's `schema.ts` gets to add its part with. */
export interface Graph {
  readonly builder: Builder;
  readonly types: ObjectTypes;
  readonly shared: SharedTypes;
  readonly streams: StreamTypes;
  readonly changes: ChangeTypes;
  readonly reader: Reader;
  readonly feed: Feed;
  readonly clock: Clock;
}

/** The caller's grant for a whole operation. The pipeline refused the operation before, if its roles allow none. */
export function grantOf<A extends Action>({ caller }: Context, action: A): Grant<A> {
  const grant = authorise(caller, action);
  if (!grant) throw new ForbiddenError('Your roles do not allow this.');
  return grant;
}

/** The kinds of objects whose changes the caller may see, of those asked for. */
export function kindsFor({ caller }: Context, asked: readonly ObjectKind[] | null | undefined): ObjectKind[] {
  return OBJECT_KINDS.filter(
    (kind) => (asked?.includes(kind) ?? true) && authorise(caller, READ_ACTION[kind]) !== undefined,
  );
}
