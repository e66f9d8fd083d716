import type { StreamEnd, StreamTransport } from './transport.js';

/**
 * WebSocket where it works, else SSE. As long as neither ever reached a server they are tried in turn; the first that
 * did is kept, so a server that restarts is not mistaken for a proxy that blocks one of them.
 */
export function autoTransport(first: StreamTransport, second: StreamTransport): StreamTransport {
  let next = first;
  let settled = false;
  return {
    get name() {
      return next.name;
    },
    open(request, sink) {
      const used = next;
      const keep = (): void => {
        settled ||= used === next;
      };
      return used.open(request, {
        accepted() {
          keep();
          sink.accepted();
        },
        next: (result) => sink.next(result),
        ended(end, draw) {
          if (reachedServer(end)) keep();
          else if (!settled && used === next) next = used === first ? second : first;
          sink.ended(end, draw);
        },
      });
    },
    close() {
      first.close();
      second.close();
    },
  };
}

/** 1006 is what a socket that never opened is closed with; a refused handshake looks the same to a browser. */
function reachedServer(end: StreamEnd): boolean {
  return end.type !== 'unreachable' && !(end.type === 'closed' && end.code === 1006);
}
