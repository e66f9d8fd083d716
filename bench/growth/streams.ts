/** Times of the change stream: from a patch to its event, and from a cursor of the past to what it missed. */
import { CountingSocket } from '../fanout/socket.js';

const TIMEOUT_MS = 60_000;

export interface Messages {
  send(text: string): void;
  /** Resolves with the next message that fits. */
  next(fits: (text: string) => boolean, what: string): Promise<string>;
  close(): void;
}

export async function openSocket(graphql: string): Promise<Messages> {
  const waiting = new Set<{
    fits(text: string): boolean;
    done(text: string): void;
    fail(error: Error): void;
  }>();
  const socket = await CountingSocket.open(graphql, {
    message(bytes) {
      const text = bytes.toString();
      for (const one of waiting) if (one.fits(text)) one.done(text);
    },
    gone(reason) {
      for (const one of waiting) one.fail(new Error(`the socket is gone: ${reason}`));
    },
  });
  const messages: Messages = {
    send: (text) => socket.send(text),
    next: (fits, what) =>
      new Promise((resolve, reject) => {
        const end = () => {
          clearTimeout(timer);
          waiting.delete(one);
        };
        const one = {
          fits,
          done(text: string) {
            end();
            resolve(text);
          },
          fail(error: Error) {
            end();
            reject(error);
          },
        };
        const timer = setTimeout(() => one.fail(new Error(`no ${what} within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
        waiting.add(one);
      }),
    close: () => socket.close(),
  };
  const acknowledged = messages.next((text) => text.includes('connection_ack'), 'connection_ack');
  messages.send('{"type":"connection_init"}');
  await acknowledged;
  return messages;
}

/** `subscription { … }`; ends with `unsubscribe`. */
export function subscribe(messages: Messages, id: string, query: string): void {
  messages.send(JSON.stringify({ type: 'subscribe', id, payload: { query } }));
}

export function unsubscribe(messages: Messages, id: string): void {
  messages.send(JSON.stringify({ type: 'complete', id }));
}

/** Milliseconds until `events` of what was missed since `cursor` have come. */
export async function resume(
  messages: Messages,
  id: string,
  cursor: string,
  events: number,
): Promise<number> {
  let seen = 0;
  const begun = performance.now();
  const arrived = messages.next((text) => {
    if (!text.includes(`"id":"${id}"`)) return false;
    if (text.includes('"errors"') || text.includes('"type":"error"')) throw new Error(text);
    if (text.includes('"type":"next"')) seen += 1;
    return seen === events;
  }, 'events of a resume');
  subscribe(
    messages,
    id,
    `subscription { watchDeployments(after: "${cursor}") { __typename ... on DeploymentChanged { deployment { id version } } } }`,
  );
  await arrived;
  const took = performance.now() - begun;
  unsubscribe(messages, id);
  return took;
}

/** Milliseconds until a cursor that lies too far back is refused. */
export async function refused(messages: Messages, id: string, cursor: string): Promise<number> {
  const begun = performance.now();
  const answered = messages.next((text) => text.includes(`"id":"${id}"`), 'refusal');
  subscribe(messages, id, `subscription { deploymentPhaseChanged(after: "${cursor}") { version } }`);
  const answer = await answered;
  if (!answer.includes('CURSOR_EXPIRED')) throw new Error(answer);
  return performance.now() - begun;
}
