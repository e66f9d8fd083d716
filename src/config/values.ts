/**
 * The kinds of values that a setting can have: each turns the text of an environment variable into a value, or says what
 * it must be. `mustBe` is one phrase for the error, the README and the tests.
 */
import { z } from 'zod';

export type SettingFacts = {
  readonly description: string;
  /** As text, the way one would write it. Undefined: the setting is absent. */
  readonly defaultText: string | undefined;
  readonly unit: string | undefined;
  /** "a whole number from 2 to 200". */
  readonly mustBe: string;
  /** Its value is never shown, not even in an error. */
  readonly secret: boolean;
};

export const settingFacts = z.registry<SettingFacts>();

type Common = { readonly description: string; readonly unit?: string };
type Parsed<T> = { readonly value: T } | 'bad';

/** A setting with a default: an empty variable counts as absent, as Compose files leave them. */
function setting<T>(
  mustBe: string,
  parse: (text: string) => Parsed<T>,
  about: Common & { default: string; secret?: boolean },
) {
  return z
    .string()
    .optional()
    .transform((text, context) =>
      checked(parse(text === undefined || text === '' ? about.default : text), mustBe, context),
    )
    .register(settingFacts, facts(mustBe, about, about.default));
}

function optional<T>(
  mustBe: string,
  parse: (text: string) => Parsed<T>,
  about: Common & { secret?: boolean },
) {
  return z
    .string()
    .optional()
    .transform((text, context) =>
      text === undefined || text === '' ? undefined : checked(parse(text), mustBe, context),
    )
    .register(settingFacts, facts(mustBe, about, undefined));
}

function checked<T>(parsed: Parsed<T>, mustBe: string, context: z.RefinementCtx): T {
  if (parsed !== 'bad') return parsed.value;
  context.addIssue({ code: 'custom', message: mustBe });
  return z.NEVER;
}

function facts(
  mustBe: string,
  about: Common & { secret?: boolean },
  defaultText: string | undefined,
): SettingFacts {
  return {
    description: about.description,
    unit: about.unit,
    secret: about.secret ?? false,
    defaultText,
    mustBe,
  };
}

type Range = { readonly min: number; readonly max: number; readonly default: number };

const within = (range: Range, value: number): Parsed<number> =>
  Number.isFinite(value) && value >= range.min && value <= range.max ? { value } : 'bad';

export function whole(about: Common & Range) {
  const parse = (text: string): Parsed<number> =>
    /^-?\d{1,15}$/.test(text) ? within(about, Number(text)) : 'bad';
  return setting(`a whole number from ${about.min} to ${about.max}`, parse, {
    ...about,
    default: String(about.default),
  });
}

/** May have a fraction. */
export function amount(about: Common & Range) {
  const parse = (text: string): Parsed<number> =>
    /^-?\d{1,15}(?:\.\d{1,6})?$/.test(text) ? within(about, Number(text)) : 'bad';
  return setting(`a number from ${about.min} to ${about.max}`, parse, {
    ...about,
    default: String(about.default),
  });
}

export function flag(about: Common & { default: boolean }) {
  const parse = (text: string): Parsed<boolean> =>
    text === 'true' || text === 'false' ? { value: text === 'true' } : 'bad';
  return setting('`true` or `false`', parse, { ...about, default: String(about.default) });
}

export function oneOf<const T extends readonly string[]>(values: T, about: Common & { default: T[number] }) {
  const parse = (text: string): Parsed<T[number]> => {
    const value = values.find((candidate) => candidate === text);
    return value === undefined ? 'bad' : { value };
  };
  return setting(`one of ${values.map((value) => `\`${value}\``).join(', ')}`, parse, about);
}

const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const IPV6 = /^(?=.*:)[0-9a-f:.]{2,45}$/i;

export function address(about: Common & { default: string }) {
  const parse = (text: string): Parsed<string> =>
    HOST_NAME.test(text) || IPV6.test(text) ? { value: text.toLowerCase() } : 'bad';
  return setting('a host name or an IP address', parse, about);
}

export function folder(about: Common & { default: string }) {
  return setting('a path', (text) => (text.includes('\0') ? 'bad' : { value: text }), about);
}

export function file(about: Common) {
  return optional('a path', (text) => (text.includes('\0') ? 'bad' : { value: text }), about);
}

export function postgresUrl(about: Common) {
  const parse = (text: string): Parsed<string> => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const fits = url !== undefined && /^postgres(?:ql)?:$/.test(url.protocol) && url.pathname.length > 1;
    return fits ? { value: text } : 'bad';
  };
  return optional('a URL `postgresql://user:password@host:port/database`', parse, { ...about, secret: true });
}

export function httpUrl(about: Common) {
  const parse = (text: string): Parsed<string> => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
      ? { value: text }
      : 'bad';
  };
  return optional('an http or https URL without a user', parse, about);
}

export function secret(mustBe: string, pattern: RegExp, about: Common) {
  return optional(mustBe, (text) => (pattern.test(text) ? { value: text } : 'bad'), {
    ...about,
    secret: true,
  });
}

function list(mustBe: string, parseItem: (text: string) => string | undefined, about: Common) {
  const parse = (text: string): Parsed<readonly string[]> => {
    const items = text === '' ? [] : text.split(',').map((item) => parseItem(item.trim()));
    const value = items.filter((item) => item !== undefined);
    return value.length === items.length ? { value: [...new Set(value)] } : 'bad';
  };
  return setting(mustBe, parse, { ...about, default: '' });
}

export function origins(about: Common) {
  const parseItem = (text: string): string | undefined => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    // A browser sends exactly this form; anything else would never match.
    return url !== undefined && /^https?:$/.test(url.protocol) && url.origin === text && !text.includes('*')
      ? text
      : undefined;
  };
  return list(
    'a comma-separated list of origins such as `https://console.example.com`, without a path, a default port or a wildcard',
    parseItem,
    about,
  );
}

export function hostHeaders(about: Common) {
  const parseItem = (text: string): string | undefined => {
    const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i.exec(text);
    const host = match?.[1] ?? '';
    return (host.startsWith('[') || HOST_NAME.test(host)) && Number(match?.[2] ?? 0) <= 65_535
      ? text.toLowerCase()
      : undefined;
  };
  return list(
    'a comma-separated list of host names, each with a port if the header has one',
    parseItem,
    about,
  );
}
