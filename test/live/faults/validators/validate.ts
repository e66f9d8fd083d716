import { atomic } from './atomic.js';
import { bookmarkable } from './bookmarkable.js';
import { durable } from './durable.js';
import type { Judged, Validator } from './judged.js';
import { ordered } from './ordered.js';
import { reliable } from './reliable.js';
import { resumable } from './resumable.js';
import { unique } from './unique.js';

/** etcd's six guarantees of a watch, and that what was acknowledged is there. */
export const VALIDATORS = {
  ordered,
  unique,
  reliable,
  atomic,
  resumable,
  bookmarkable,
  durable,
} as const satisfies Record<string, Validator>;

export function validate(judged: Judged): readonly string[] {
  return Object.entries(VALIDATORS).flatMap(([name, validator]) =>
    validator(judged).map((text) => `${name}: ${text}`),
  );
}
