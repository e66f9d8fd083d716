/**
 * A WebSocket text frame of the server, by hand: server frames carry no mask, so a payload that was serialised once is
 * copied behind a small head. Written whole and between frames only, as `ws` itself does without compression.
 */
const FIN_TEXT = 0x81;

/** One frame whose text is both parts, already UTF-8. */
function textFrame(first: Uint8Array, second: Uint8Array): Buffer {
  const length = first.length + second.length;
  const start = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(start + length);
  frame[0] = FIN_TEXT;
  if (start === 2) {
    frame[1] = length;
  } else if (start === 4) {
    frame[1] = 126;
    frame[2] = length >> 8;
    frame[3] = length & 0xff;
  } else {
    frame[1] = 127;
    frame.writeUInt32BE(Math.floor(length / 2 ** 32), 2);
    frame.writeUInt32BE(length % 2 ** 32, 6);
  }
  frame.set(first, start);
  frame.set(second, start + first.length);
  return frame;
}

const NOTHING = Buffer.alloc(0);
export function textMessage(text: string): Buffer {
  return textFrame(NOTHING, Buffer.from(text));
}

/** What stands before every payload of one operation on one socket. */
export function nextHead(operationId: string): Buffer {
  return Buffer.from(`{"id":${JSON.stringify(operationId)},"type":"next","payload":`);
}

/**
 * One answer, serialised once for all who get it. Whoever is sent the same frame as the one before is sent the very
 * same bytes: many clients name their only operation alike, and event streams name none.
 */
export class Payload {
  /** The JSON, and the brace that closes a `next` message. */
  readonly #closed: Buffer;
  #operationId: string | undefined;
  #cursor: string | undefined;
  #frame: Buffer = NOTHING;
  #event: Buffer = NOTHING;

  constructor(answer: unknown) {
    this.#closed = Buffer.from(`${JSON.stringify(answer)}}`);
  }

  get json(): Buffer {
    return this.#closed.subarray(0, -1);
  }

  /** What it takes in memory, roughly. */
  get bytes(): number {
    return PAYLOAD_BYTES + 2 * this.#closed.length;
  }

  /** A `next` message; `head` is `nextHead(operationId)`. */
  next(operationId: string, head: Buffer): Buffer {
    if (operationId !== this.#operationId) {
      this.#frame = textFrame(head, this.#closed);
      this.#operationId = operationId;
    }
    return this.#frame;
  }

  /** The event of an event stream. */
  event(cursor: string): Buffer {
    if (cursor !== this.#cursor) {
      this.#event = sseEvent(cursor, this.json);
      this.#cursor = cursor;
    }
    return this.#event;
  }
}
const PAYLOAD_BYTES = 256;

/** One event of an event stream; JSON has no line breaks. The id is the cursor that a browser sends back. */
export function sseEvent(cursor: string | null, json: Buffer): Buffer {
  const head = cursor === null ? 'event: next\ndata: ' : `id: ${cursor}\nevent: next\ndata: `;
  const frame = Buffer.allocUnsafe(Buffer.byteLength(head) + json.length + 2);
  const start = frame.write(head);
  frame.set(json, start);
  frame.write('\n\n', start + json.length);
  return frame;
}

/** Moves the id that a browser sends back, and is no event to it: the format dispatches none without data. */
export function ssePlace(cursor: string): Buffer {
  return Buffer.from(`id: ${cursor}\n\n`);
}
