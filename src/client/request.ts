import { codeOf, requestIdOf, SlipwayRequestError, type SlipwayErrorCode } from './errors.js';
import { errorsIn } from './sse-transport.js';
import type { ClientClock } from './timing.js';
import { resolveToken, type TokenSource } from './transport.js';

export interface RequestOptions {
  /** Milliseconds until the call fails with TIMEOUT; the client's own limit if left out. */
  readonly timeoutMs?: number | undefined;
  /** Gives the call up with ABORTED. A mutation may have happened nevertheless. */
  readonly signal?: AbortSignal | undefined;
}

export interface RequestDeps {
  readonly url: string;
  readonly token: TokenSource;
  readonly fetch: typeof fetch;
  readonly clock: ClientClock;
  readonly timeoutMs: number;
}

interface GraphRequest {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
}

/**
 * One query or mutation. Gives `data`; everything else is a SlipwayRequestError. Never sends twice: whether a mutation
 * whose answer was lost may be repeated is the caller's to say, best by an idempotency key.
 */
export async function sendRequest(
  deps: RequestDeps,
  request: GraphRequest,
  options: RequestOptions = {},
): Promise<unknown> {
  const timeoutMs = options.timeoutMs ?? deps.timeoutMs;
  const controller = new AbortController();
  let failed: SlipwayErrorCode = 'NETWORK';
  const giveUp = (code: SlipwayErrorCode): void => {
    failed = code;
    controller.abort();
  };
  const aborted = (): void => giveUp('ABORTED');
  if (options.signal?.aborted) aborted();
  options.signal?.addEventListener('abort', aborted, { once: true });
  const cancelTimer = deps.clock.after(timeoutMs, () => giveUp('TIMEOUT'));
  try {
    const token = await resolveToken(deps.token);
    const response = await deps.fetch(deps.url, {
      method: 'POST',
      headers: {
        accept: 'application/graphql-response+json, application/json',
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(request),
      signal: controller.signal,
    });
    return resultOf(response, await response.text());
  } catch (cause) {
    if (cause instanceof SlipwayRequestError) throw cause;
    throw new SlipwayRequestError({
      code: failed,
      message: failureMessage(failed, deps.url, timeoutMs),
      cause: options.signal?.reason ?? cause,
    });
  } finally {
    cancelTimer();
    options.signal?.removeEventListener('abort', aborted);
  }
}

function failureMessage(code: SlipwayErrorCode, url: string, timeoutMs: number): string {
  if (code === 'TIMEOUT') return `${url} gave no answer within ${timeoutMs} ms.`;
  return code === 'ABORTED' ? 'The request was given up by its caller.' : `${url} could not be reached.`;
}

function resultOf(response: Response, text: string): unknown {
  const { status } = response;
  const errors = errorsIn(text);
  const data = dataIn(text);
  const requestId = requestIdOf(errors) ?? response.headers.get('x-request-id');
  if (errors[0]) {
    throw new SlipwayRequestError({
      code: codeOf(errors) ?? 'BAD_RESPONSE',
      message: errors[0].message,
      status,
      requestId,
      errors,
      data,
    });
  }
  if (data === undefined || data === null) {
    const code = status === 502 || status === 503 || status === 504 ? 'UNAVAILABLE' : 'BAD_RESPONSE';
    throw new SlipwayRequestError({
      code,
      message: `The answer (HTTP status ${status}) is not one of GraphQL.`,
      status,
      requestId,
    });
  }
  return data;
}

function dataIn(text: string): unknown {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && 'data' in body ? body.data : undefined;
  } catch {
    return undefined; // not JSON: told by status
  }
}
