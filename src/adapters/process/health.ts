import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';

import { systemCode } from './absent.js';
import type { HealthSpec } from './spec.js';

/** Why a check failed, in one sentence; undefined when it passed. Takes at most `timeoutSeconds`; throws only when aborted. */
export async function checkHealth(health: HealthSpec, signal: AbortSignal): Promise<string | undefined> {
  const timeout = AbortSignal.timeout(health.timeoutSeconds * 1000);
  const either = AbortSignal.any([signal, timeout]);
  try {
    if (health.http) return await checkHttp(health.http, either);
    if (health.tcp) return await checkTcp(health.tcp, either);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    const where = addressOf(health);
    if (timeout.aborted) return `${where} did not answer within ${health.timeoutSeconds} s`;
    return `${where}: ${systemCode(error) ?? 'failed'}`;
  }
}

export function addressOf({ http, tcp }: Pick<HealthSpec, 'http' | 'tcp'>): string {
  // Without what may stand for a password in it.
  if (http) {
    return httpAddress(http)
      .href.replace(/\/\/[^/@]*@/, '//')
      .replace(/\?.*$/, '');
  }
  return tcp ? `${tcp.host}:${tcp.port}` : 'the program';
}

type HttpCheck = NonNullable<HealthSpec['http']>;

export function httpAddress({ url, port, path = '/' }: HttpCheck): URL {
  return new URL(url ?? `http://127.0.0.1:${port ?? 0}${path}`);
}

/** No pooled connection: it would say that a listener lives which took its last connection long ago. */
function checkHttp(check: HttpCheck, signal: AbortSignal): Promise<string | undefined> {
  const url = httpAddress(check);
  const options: RequestOptions = { agent: false, signal, headers: { 'user-agent': 'slipway' } };
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options, (response) => {
      const { statusCode = 0 } = response;
      response.on('error', () => undefined);
      // The status is all that counts; a body may never end.
      response.destroy();
      resolve(statusProblem(check, statusCode));
    });
    request.on('error', reject);
    request.end();
  });
}

function statusProblem(check: HttpCheck, status: number): string | undefined {
  const { expectStatus } = check;
  const good = expectStatus === undefined ? status >= 200 && status < 400 : status === expectStatus;
  if (good) return undefined;
  return `${addressOf({ http: check })} answered ${status}, not ${expectStatus ?? '200 to 399'}`;
}

function checkTcp({ port, host }: NonNullable<HealthSpec['tcp']>, signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host });
    const abort = (): void => {
      socket.destroy(new Error('no answer in time'));
    };
    signal.addEventListener('abort', abort, { once: true });
    socket.once('connect', () => resolve(undefined));
    socket.once('error', reject);
    socket.once('close', () => signal.removeEventListener('abort', abort));
    socket.once('connect', () => socket.destroy());
    if (signal.aborted) abort();
  });
}
