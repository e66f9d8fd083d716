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
  /** Whether the server answers to this name at all. `host` is the header as it came. */
  hostAllowed(host: string | undefined): boolean;
  /**
   * - `absent`: no browser, or a plain navigation
   * - `same`: a page of this server
   * - `allowed`: a page of an origin in the list
   * - `refused`: any other page, sandboxed ones (`null`) included
   */
  originOf(origin: string | undefined, host: string | undefined): 'absent' | 'same' | 'allowed' | 'refused';
  /** Headers of every answer, refusals included, so that no cache mixes up what it gave to whom. */
  corsHeaders(origin: string | undefined, host: string | undefined): Readonly<Record<string, string>>;
  /** Headers of the answer (204) to a preflight; undefined: refuse it (403). */
  preflightHeaders(
    origin: string | undefined,
    host: string | undefined,
  ): Readonly<Record<string, string>> | undefined;
}

const VARY = { Vary: 'Origin' } as const;
const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'GET, POST, OPTIONS',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, Last-Event-ID, X-Request-Id, Traceparent, GraphQL-Preflight',
  'Access-Control-Max-Age': '600',
} as const;

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

  const originOf: OriginPolicy['originOf'] = (origin, host) => {
    if (origin === undefined) return 'absent';
    if (origins.has(origin)) return 'allowed';
    return hostAllowed(host) && isSameOrigin(origin, host) ? 'same' : 'refused';
  };

  const corsHeaders: OriginPolicy['corsHeaders'] = (origin, host) =>
    origin !== undefined && originOf(origin, host) === 'allowed'
      ? // Never `*`, and no credentials: a token is sent by the page itself, never by the browser for it.
        { ...VARY, 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': 'X-Request-Id' }
      : VARY;

  return {
    hostAllowed,
    originOf,
    corsHeaders,
    preflightHeaders(origin, host) {
      const kind = originOf(origin, host);
      if (kind === 'absent' || kind === 'refused') return undefined;
      return { ...corsHeaders(origin, host), ...PREFLIGHT };
    },
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
