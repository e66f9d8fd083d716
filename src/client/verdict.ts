import { codeOf, requestIdOf, type GraphError, type SlipwayErrorCode } from './errors.js';
import type { StreamEnd } from './transport.js';

/**
 * What the end of an attempt means for the stream, whichever protocol it came by.
 *
 * `again`       come back after a wait, from where the stream stands
 * `fresh`       come back, but what the caller holds can no longer be continued: take a new snapshot
 * `expired`     the cursor cannot be honored any more: events between it and now are gone
 * `final`       trying again by itself would not help
 * `over`        the server says that the stream is complete
 */
export type Verdict = 'again' | 'fresh' | 'expired' | 'final' | 'over';

export interface Judgement {
  readonly verdict: Verdict;
  readonly code: SlipwayErrorCode;
  readonly message: string;
  readonly closeCode: number | null;
  readonly requestId: string | null;
  readonly errors: readonly GraphError[];
  readonly cause?: unknown;
}

/** The close reason by which the server says that rights changed, so that older cursors hide what became visible. */
export const ACCESS_CHANGED = 'access changed';

interface Meaning {
  readonly verdict: Verdict;
  readonly code: SlipwayErrorCode;
  readonly message: string;
}

/** Codes that are not listed: see `closeMeaning`. */
const CLOSE_CODES: Readonly<Record<number, Meaning>> = {
  1000: { verdict: 'again', code: 'NETWORK', message: 'The server closed the connection.' },
  1001: { verdict: 'again', code: 'NETWORK', message: 'The server is going away.' },
  1005: { verdict: 'again', code: 'NETWORK', message: 'The connection was closed without a reason.' },
  1006: { verdict: 'again', code: 'NETWORK', message: 'The connection broke, or was never made.' },
  1008: { verdict: 'final', code: 'FORBIDDEN', message: 'Refused by policy, of a proxy perhaps.' },
  1009: {
    verdict: 'final',
    code: 'BAD_RESPONSE',
    message: 'The subscription is larger than the server takes.',
  },
  1011: { verdict: 'again', code: 'INTERNAL', message: 'The server met a bug.' },
  1012: { verdict: 'again', code: 'UNAVAILABLE', message: 'The server restarts.' },
  1013: { verdict: 'again', code: 'UNAVAILABLE', message: 'The server is overloaded.' },
  1014: { verdict: 'again', code: 'UNAVAILABLE', message: 'A proxy found no server.' },
  4400: { verdict: 'final', code: 'BAD_RESPONSE', message: 'The server did not understand the client.' },
  4401: {
    verdict: 'final',
    code: 'UNAUTHENTICATED',
    message: 'The credentials were revoked or never valid.',
  },
  4403: { verdict: 'final', code: 'FORBIDDEN', message: 'The server refuses this caller.' },
  4406: {
    verdict: 'final',
    code: 'BAD_RESPONSE',
    message: 'The server does not speak graphql-transport-ws.',
  },
  4408: { verdict: 'again', code: 'NETWORK', message: 'The connection was opened too slowly.' },
  4409: { verdict: 'again', code: 'INTERNAL', message: 'The server still held an operation of this id.' },
  4440: { verdict: 'again', code: 'UNAUTHENTICATED', message: 'The credentials expired.' },
  4441: { verdict: 'again', code: 'SLOW_CONSUMER', message: 'The connection took events too slowly.' },
  4442: {
    verdict: 'final',
    code: 'RATE_LIMITED',
    message: 'The connection went over a limit of the server.',
  },
  4499: { verdict: 'again', code: 'NETWORK', message: 'The server did not answer any more.' },
  4500: { verdict: 'again', code: 'INTERNAL', message: 'The server met a bug.' },
};

function closeMeaning(code: number, reason: string): Meaning {
  if (code === 4440 && reason === ACCESS_CHANGED) {
    return { verdict: 'fresh', code: 'UNAUTHENTICATED', message: 'What the caller may see has changed.' };
  }
  const known = CLOSE_CODES[code];
  if (known) return known;
  // 4000 and above are an application's own words: a server that closes with one we do not know means us. Below are
  // the protocol's and proxies'; they pass.
  const verdict = code >= 4_000 ? 'final' : 'again';
  return {
    verdict,
    code: verdict === 'final' ? 'BAD_RESPONSE' : 'NETWORK',
    message: `The connection was closed with ${code}.`,
  };
}

const ERROR_CODES: Readonly<Record<string, Verdict>> = {
  SLOW_CONSUMER: 'again',
  UNAVAILABLE: 'again',
  RATE_LIMITED: 'again',
  CURSOR_EXPIRED: 'expired',
  CURSOR_INVALID: 'final',
  FORBIDDEN: 'final',
  TOO_COMPLEX: 'final',
  // One bad event would come again with each attempt.
  INTERNAL: 'final',
};

function errorsMeaning(errors: readonly GraphError[], otherwise: Verdict): Meaning {
  const code = codeOf(errors);
  const listed = code === 'UNAUTHENTICATED' ? unauthenticatedVerdict(errors) : ERROR_CODES[code ?? ''];
  return {
    // Without a code it is a document that the server's schema does not know: final.
    verdict: listed ?? otherwise,
    code: code ?? 'BAD_RESPONSE',
    message: errors[0]?.message ?? 'The server ended the subscription without a reason.',
  };
}

/** Without a connection of its own to close, an event stream tells by `reason` what a close code tells elsewhere. */
function unauthenticatedVerdict(errors: readonly GraphError[]): Verdict {
  const reason = errors[0]?.extensions?.['reason'];
  if (reason === 'changed') return 'fresh';
  return reason === 'expired' ? 'again' : 'final';
}

function statusVerdict(status: number): Verdict {
  return status >= 500 || status === 408 || status === 425 || status === 429 ? 'again' : 'final';
}

function refusalMeaning(status: number, errors: readonly GraphError[]): Meaning {
  if (errors.length > 0) return errorsMeaning(errors, statusVerdict(status));
  const verdict = statusVerdict(status);
  return {
    verdict,
    code: verdict === 'final' ? 'BAD_RESPONSE' : 'UNAVAILABLE',
    message: `The server answered with HTTP status ${status}.`,
  };
}

/** Total over everything that a transport can report. */
export function judge(end: StreamEnd): Judgement {
  switch (end.type) {
    case 'completed':
      return {
        verdict: 'over',
        code: 'NETWORK',
        message: 'Complete.',
        closeCode: null,
        requestId: null,
        errors: [],
      };
    case 'errors':
      return judgement(errorsMeaning(end.errors, 'final'), end.errors);
    case 'refused':
      return judgement(refusalMeaning(end.status, end.errors), end.errors);
    case 'closed':
      return { ...judgement(closeMeaning(end.code, end.reason), []), closeCode: end.code };
    case 'unreachable':
      return {
        ...judgement({ verdict: 'again', code: 'NETWORK', message: 'The server could not be reached.' }, []),
        cause: end.cause,
      };
  }
}

function judgement(meaning: Meaning, errors: readonly GraphError[]): Judgement {
  return { ...meaning, closeCode: null, requestId: requestIdOf(errors), errors };
}
