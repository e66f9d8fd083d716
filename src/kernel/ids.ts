import { typeid } from 'typeid-js';
import { z } from 'zod';

/** Every kind of object with an id, and the prefix that its ids carry. */
export const ID_PREFIXES = {
  RUNTIME: 'rt',
  RELEASE: 'rel',
  DEPLOYMENT: 'dep',
  AGENT: 'agt',
  TOKEN: 'tok',
  ROLLOUT: 'ro',
} as const;

export type ObjectKind = keyof typeof ID_PREFIXES;
export const OBJECT_KINDS = [
  'RUNTIME',
  'RELEASE',
  'DEPLOYMENT',
  'AGENT',
  'TOKEN',
  'ROLLOUT',
] as const satisfies readonly ObjectKind[];

declare const brand: unique symbol;
/** An id that was parsed: text such as `dep_01h455vb4pex5vsknk084sn02q`, sortable by its time of creation. */
export type Id<K extends ObjectKind = ObjectKind> = string & { readonly [brand]: K };
export type RuntimeId = Id<'RUNTIME'>;
export type ReleaseId = Id<'RELEASE'>;
export type DeploymentId = Id<'DEPLOYMENT'>;
export type AgentId = Id<'AGENT'>;
export type TokenId = Id<'TOKEN'>;
export type RolloutId = Id<'ROLLOUT'>;

export function newId<K extends ObjectKind>(kind: K): Id<K> {
  const text: string = typeid(ID_PREFIXES[kind]).toString();
  return text as Id<K>; // just made from the prefix of that kind
}

/** The id, or undefined if the text is not one of that kind. Never throws. */
export function parseId<K extends ObjectKind>(kind: K, text: string): Id<K> | undefined {
  return kindOfId(text) === kind ? (text as Id<K>) : undefined; // checked on this line
}

const kindByPrefix = new Map<string, ObjectKind>(OBJECT_KINDS.map((kind) => [ID_PREFIXES[kind], kind]));

/** 128 bits in Crockford's base 32: the first of the 26 digits holds three of them. */
const SUFFIX = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** The kind that a well-formed id names, or undefined. Never throws. */
export function kindOfId(text: string): ObjectKind | undefined {
  const end = text.lastIndexOf('_');
  const kind = end < 0 ? undefined : kindByPrefix.get(text.slice(0, end));
  return kind !== undefined && SUFFIX.test(text.slice(end + 1)) ? kind : undefined;
}

/** An id of that kind in an input. */
export function idSchema<K extends ObjectKind>(kind: K) {
  return z.string().transform((text, context): Id<K> => {
    const id = parseId(kind, text);
    if (id !== undefined) return id;
    context.issues.push({
      code: 'custom',
      message: `must be an id of the form \`${ID_PREFIXES[kind]}_…\``,
      input: text,
    });
    return z.NEVER;
  });
}
