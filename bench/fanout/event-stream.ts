/**
 * A reader of an event stream that costs little: it counts `next` events and looks into none. A chunk may hold many of
 * them and end anywhere.
 */
import { once } from 'node:events';
import { connect } from 'node:net';

import { CountingConnection, type SubscriberEvents } from './counting.js';

const NEXT = Buffer.from('event: next');
const HEAD_END = '\r\n\r\n';

export class CountingStream extends CountingConnection {
  /** The end of what was read, in case an event begins in it. */
  #tail: Buffer = Buffer.alloc(0);

  /** Resolves with the head of the answer. */
  static async open(url: string, document: string, events: SubscriberEvents): Promise<CountingStream> {
    const { hostname, port, host, pathname } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    const body = JSON.stringify({ query: document });
    socket.write(
      `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\naccept: text/event-stream\r\ncontent-type: application/json\r\n` +
        `content-length: ${Buffer.byteLength(body)}${HEAD_END}${body}`,
    );
    const [head] = (await once(socket, 'data')) as [Buffer]; // no encoding is set
    const text = head.toString('latin1');
    if (!text.startsWith('HTTP/1.1 200') || !text.includes('text/event-stream')) {
      throw new Error(`no event stream: ${text}`);
    }
    const opened = new CountingStream(socket, events);
    opened.take(head);
    opened.listen();
    return opened;
  }

  protected take(chunk: Buffer): void {
    const bytes = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk]);
    let end = 0;
    for (let at = bytes.indexOf(NEXT); at >= 0; at = bytes.indexOf(NEXT, end)) {
      end = at + NEXT.length;
      const next = bytes.indexOf(NEXT, end);
      this.events.message(bytes.subarray(at, next < 0 ? bytes.length : next));
    }
    this.#tail = bytes.subarray(Math.max(end, bytes.length - NEXT.length + 1));
  }
}
