/**
 * Which Host and Origin headers the server answers: one policy for HTTP, server-sent events and the WebSocket
 * handshake.
 *
 * On loopback nobody needs a token, so the browser of anybody on this machine is what stands between a foreign page
 * and the API: a page that lets its name resolve to 127.0.0.1 is same-origin to the browser, and is told by its Host
 * alone; any other is told by its Origin. Elsewhere every operation needs a token, which a foreign page does not have;
 * the Host is then checked only against `allowedHosts`, if there are any.
 */
export interface OriginSettings {
  /** Bound to loopback. */
  readonly loopback: boolean;
  /** Exact origins, as browsers send them. */
  readonly allowedOrigins: readonly string[];
  /** Lower-case host names, each with a port or, for any port, without. */
  readonly allowedHosts: readonly string[];
}

export interface OriginPolicy {
  /** Undefined when the request may go on; otherwise the sentence that refuses it. Headers as they came. */
  refusal(headers: {
    readonly host?: string | undefined;
    readonly origin?: string | undefined;
  }): string | undefined;
  /** Whether answers carry CORS headers for this origin: a listed one, not merely the server's own. */
  crossOrigin(origin: string): boolean;
}

/** `port` is asked at each check: the system may choose it when the server begins to listen. */
export function originPolicy(settings: OriginSettings, port: () => number): OriginPolicy {
  const origins = new Set(settings.allowedOrigins);
  const hosts = new Set(settings.allowedHosts);

  const hostAllowed = (host: string | undefined): boolean => {
    const parsed = parseHost(host);
    if (!parsed) return false;
    const { name, port: asked } = parsed;
    if (hosts.has(name) || (asked !== undefined && hosts.has(`${name}:${asked}`))) return true;
    if (settings.loopback) return isLoopbackName(name) && (asked ?? 80) === port();
    return hosts.size === 0;
  };

  return {
    refusal({ host, origin }) {
      if (!hostAllowed(host)) {
        return 'This server does not go by that name. SLIPWAY_ALLOWED_HOSTS lists further values of the Host header.';
      }
      if (origin === undefined || origins.has(origin) || isSameOrigin(origin, host)) return undefined;
      // Sandboxed pages and files send `null`: they too are somebody's page.
      return 'Pages of that origin may not use this server. SLIPWAY_ALLOWED_ORIGINS lists those that may.';
    },
    crossOrigin: (origin) => origins.has(origin),
  };
}

const HOST = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?$/i;

function parseHost(
  host: string | undefined,
): { readonly name: string; readonly port: number | undefined } | undefined {
  const match = HOST.exec(host ?? '');
  if (!match?.[1]) return undefined;
  // `localhost.` is the same name, spelled to the root.
  const name = match[1].toLowerCase().replace(/\.$/, '');
  return { name, port: match[2] === undefined ? undefined : Number(match[2]) };
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name);
}

/** The scheme is the origin's own: behind a proxy that ends TLS, only the browser knows it. */
function isSameOrigin(origin: string, host: string | undefined): boolean {
  const scheme = /^https?:\/\//.exec(origin)?.[0];
  if (scheme === undefined || host === undefined) return false;
  const asked = `${scheme}${host}`;
  return URL.canParse(asked) && URL.canParse(origin) && new URL(asked).origin === new URL(origin).origin;
}
