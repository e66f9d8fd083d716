/**
 * A WebSocket text frame of the server, by hand: server frames carry no mask, so a payload that was serialised once is
 * copied behind a small head. Written whole and between frames only, as `ws` itself does without compression.
 */
const FIN_TEXT = 0x81;

/** One frame whose text is `head`, `payload` and `tail`, already UTF-8. */
function textFrame(head: Buffer, payload: Buffer, tail: Buffer): Buffer {
  const length = head.length + payload.length + tail.length;
  const start = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(start + length);
  frame[0] = FIN_TEXT;
  if (start === 2) {
    frame[1] = length;
  } else if (start === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeUInt32BE(Math.floor(length / 2 ** 32), 2);
    frame.writeUInt32BE(length % 2 ** 32, 6);
  }
  head.copy(frame, start);
  payload.copy(frame, start + head.length);
  tail.copy(frame, start + head.length + payload.length);
  return frame;
}

const NOTHING = Buffer.alloc(0);
export function textMessage(text: string): Buffer {
  return textFrame(NOTHING, Buffer.from(text), NOTHING);
}

const NEXT_TAIL = Buffer.from('}');
/** What stands before and behind every payload of one operation on one socket. */
export function nextHead(operationId: string): Buffer {
  return Buffer.from(`{"id":${JSON.stringify(operationId)},"type":"next","payload":`);
}
export function nextFrame(head: Buffer, payload: Buffer): Buffer {
  return textFrame(head, payload, NEXT_TAIL);
}

/** One event of an event stream; JSON has no line breaks. The id is the cursor that a browser sends back. */
export function sseEvent(cursor: string | null, payload: Buffer): Buffer {
  const head = cursor === null ? 'event: next\ndata: ' : `id: ${cursor}\nevent: next\ndata: `;
  const frame = Buffer.allocUnsafe(Buffer.byteLength(head) + payload.length + 2);
  const start = frame.write(head);
  payload.copy(frame, start);
  frame.write('\n\n', start + payload.length);
  return frame;
}
