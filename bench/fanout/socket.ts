/**
 * A WebSocket client that costs little: it counts text messages, answers pings, and looks into a message only when asked
 * to. A full client would take more CPU for a delivery than the server that is measured.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';

import { CountingConnection, type SubscriberEvents } from './counting.js';

const FIN_TEXT = 0x81;
const FIN_PONG = 0x8a;
const MASKED = 0x80;
const MASK_BYTES = 4;
const OPCODE = { text: 1, close: 8, ping: 9 } as const;
const NOTHING = Buffer.alloc(0);

export class CountingSocket extends CountingConnection {
  #received: Buffer = NOTHING;

  static async open(url: string, events: SubscriberEvents): Promise<CountingSocket> {
    const { hostname, port, host, pathname } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    socket.write(
      `GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n` +
        `sec-websocket-key: ${randomBytes(16).toString('base64')}\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n`,
    );
    // Nothing follows the head before this client speaks first.
    const [head] = (await once(socket, 'data')) as [Buffer]; // no encoding is set
    if (!head.toString('latin1').startsWith('HTTP/1.1 101')) {
      throw new Error(`no upgrade: ${head.toString('latin1')}`);
    }
    const opened = new CountingSocket(socket, events);
    opened.listen();
    return opened;
  }

  send(text: string): void {
    this.socket.write(clientFrame(FIN_TEXT, Buffer.from(text)));
  }

  protected take(chunk: Buffer): void {
    const bytes = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    let at = 0;
    for (;;) {
      const frame = frameAt(bytes, at);
      if (!frame) break;
      at = frame.end;
      this.#handle(frame.opcode, bytes.subarray(frame.start, frame.end));
    }
    this.#received = at === bytes.length ? NOTHING : bytes.subarray(at);
  }

  #handle(opcode: number, payload: Buffer): void {
    if (opcode === OPCODE.text) this.events.message(payload);
    else if (opcode === OPCODE.ping) this.socket.write(clientFrame(FIN_PONG, payload));
    else if (opcode === OPCODE.close) this.end(`close ${payload.toString('latin1')}`);
  }
}

/** Undefined until the whole frame is there. Servers do not mask, and ours do not fragment. */
function frameAt(
  bytes: Buffer,
  at: number,
): { readonly opcode: number; readonly start: number; readonly end: number } | undefined {
  if (bytes.length < at + 2) return undefined;
  const opcode = bytes.readUInt8(at) & 0x0f;
  let length = bytes.readUInt8(at + 1);
  let start = at + 2;
  if (length === 126) {
    if (bytes.length < at + 4) return undefined;
    length = bytes.readUInt16BE(at + 2);
    start = at + 4;
  } else if (length === 127) {
    if (bytes.length < at + 10) return undefined;
    length = Number(bytes.readBigUInt64BE(at + 2));
    start = at + 10;
  }
  return bytes.length < start + length ? undefined : { opcode, start, end: start + length };
}

/** Masked with zeros, which changes nothing and is as good as any mask on loopback. */
function clientFrame(first: number, payload: Buffer): Buffer {
  const head =
    payload.length < 126
      ? Buffer.from([first, MASKED | payload.length])
      : Buffer.from([first, MASKED | 126, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([head, Buffer.alloc(MASK_BYTES), payload]);
}
