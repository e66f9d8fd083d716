/**
 * What a statement is sent as: the messages of the extended protocol in one piece, which is one write to the socket where the driver makes
 * four. Parameters and results are text.
 */
const BIND = 0x42;
const DESCRIBE_PORTAL = Buffer.from([0x44, 0, 0, 0, 6, 0x50, 0]);
const EXECUTE = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0]);
const SYNC = Buffer.from([0x53, 0, 0, 0, 4]);
const NULL_LENGTH = -1;

/** Bind, execute and sync of the statement of that name, or of the last one without; `describe`: with the columns of its rows. */
export function runMessages(name: string, values: readonly unknown[], describe: boolean): Buffer {
  const texts = values.map(parameterText);
  const lengths = texts.map((text) => (text === null ? 0 : Buffer.byteLength(text)));
  const bind = lengths.reduce(
    (sum, length) => sum + 4 + length,
    4 + 1 + Buffer.byteLength(name) + 1 + 2 + 2 + 2,
  );
  const rest = (describe ? DESCRIBE_PORTAL.length : 0) + EXECUTE.length + SYNC.length;
  const buffer = Buffer.allocUnsafe(1 + bind + rest);
  buffer[0] = BIND;
  let at = buffer.writeInt32BE(bind, 1);
  buffer[at] = 0; // the portal without a name
  at += 1;
  at += buffer.write(name, at);
  buffer[at] = 0;
  at = buffer.writeInt16BE(0, at + 1); // all parameters are text
  at = buffer.writeInt16BE(texts.length, at);
  for (const [index, text] of texts.entries()) {
    at = buffer.writeInt32BE(text === null ? NULL_LENGTH : (lengths[index] ?? 0), at);
    if (text !== null) at += buffer.write(text, at);
  }
  at = buffer.writeInt16BE(0, at); // and so are all results
  if (describe) at += DESCRIBE_PORTAL.copy(buffer, at);
  at += EXECUTE.copy(buffer, at);
  SYNC.copy(buffer, at);
  return buffer;
}

/** As PostgreSQL reads it. Moments in UTC, lists as its arrays, other objects as JSON. */
function parameterText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return arrayText(value);
  if (ArrayBuffer.isView(value)) throw new TypeError('a parameter of bytes has no text');
  if (typeof value === 'object') return JSON.stringify(value);
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return `${value}`;
  throw new TypeError(`a parameter of type ${typeof value} has no text`);
}

function arrayText(items: readonly unknown[]): string {
  const elements = items.map((item) => {
    if (Array.isArray(item)) return arrayText(item);
    const text = parameterText(item);
    return text === null ? 'NULL' : `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
  });
  return `{${elements.join(',')}}`;
}
