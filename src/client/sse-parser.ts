/** One dispatched event of a text/event-stream. */
export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
  /** Null where the event carries no `id:` line. */
  readonly id: string | null;
}

/** A single event may not be larger: 16 Mi characters, far above any payload that the server sends. */
export const EVENT_MAX_CHARACTERS = 16 * 1024 * 1024;

/**
 * Takes text as it arrives, cut anywhere, and gives the events that became complete. Comments and unknown fields are
 * dropped, as the format asks. Throws when one event passes EVENT_MAX_CHARACTERS.
 */
export function sseParser(): (chunk: string) => ServerSentEvent[] {
  let rest = '';
  let event = '';
  let id: string | null = null;
  let data: string[] = [];
  let size = 0;

  function line(text: string, out: ServerSentEvent[]): void {
    if (text === '') {
      if (event !== '' || data.length > 0) out.push({ event: event || 'message', data: data.join('\n'), id });
      event = '';
      id = null;
      data = [];
      size = 0;
      return;
    }
    const colon = text.indexOf(':');
    if (colon === 0) return;
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(text.charAt(colon + 1) === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
    else if (field === 'id' && !value.includes('\0')) id = value;
    size += text.length;
  }

  return (chunk) => {
    const out: ServerSentEvent[] = [];
    rest += chunk;
    // A lone CR at the very end may be the first half of a CRLF: left for the next chunk.
    const end = rest.endsWith('\r') ? rest.length - 1 : rest.length;
    const lines = rest.slice(0, end).split(/\r\n|\n|\r/);
    const last = lines.pop() ?? '';
    for (const text of lines) line(text, out);
    rest = last + rest.slice(end);
    if (size + rest.length > EVENT_MAX_CHARACTERS) {
      throw new RangeError('An event of the stream is too large.');
    }
    return out;
  };
}
