import { SlipwayRequestError, SlipwayStreamError } from './errors.js';
import type { StreamEnd } from './transport.js';
import type { Judgement } from './verdict.js';

/** Translations at the edge of stream.ts: what an event, a failed request and an end mean in each other's words. */

export function eventFacts(event: unknown): { typename: string | null; cursor: string | null } {
  if (typeof event !== 'object' || event === null) return { typename: null, cursor: null };
  const typename = '__typename' in event && typeof event.__typename === 'string' ? event.__typename : null;
  const cursor = 'cursor' in event && typeof event.cursor === 'string' ? event.cursor : null;
  return { typename, cursor };
}

/** A request that failed, in the words of a transport. */
export function endOf(error: unknown): StreamEnd {
  if (error instanceof SlipwayRequestError && error.status !== null) {
    return { type: 'refused', status: error.status, errors: error.errors };
  }
  return { type: 'unreachable', cause: error };
}

export type FinalReason = 'refused' | 'expired' | 'gap' | 'overflow';

/** What the reader is thrown. `last` is what the latest attempt ended with. */
export function failureOf(
  why: FinalReason,
  last: Judgement | null,
  cursor: string | null,
): SlipwayStreamError {
  const { code, message, closeCode, errors, cause } = last ?? NOTHING_SAID;
  switch (why) {
    case 'refused':
    case 'expired':
      return new SlipwayStreamError({ code, message, cursor, closeCode, errors, cause });
    case 'gap': {
      const text = `Events may be missing, since the document takes no \`$after\`. ${message}`;
      return new SlipwayStreamError({ code: 'GAP', message: text, cursor, closeCode, errors, cause });
    }
    case 'overflow': {
      const text = 'Events came faster than they were read.';
      return new SlipwayStreamError({ code: 'OVERFLOW', message: text, cursor });
    }
  }
}

const NOTHING_SAID = { code: 'NETWORK', message: '', closeCode: null, errors: [], cause: undefined } as const;
