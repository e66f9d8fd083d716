import { z } from 'zod';

import { storable } from './text.js';

/** A JSON value, as stored in a jsonb column. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/**
 * The content of a jsonb column that holds an object, as it is. Not a record of zod's: that is a copy, and a copy loses
 * the key `__proto__`, at every level.
 */
export const storedObjectSchema = z.custom<JsonObject>(isObject, { error: 'must be a JSON object' });

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** JSON with sorted keys: equal content gives equal text. Undefined members are left out, as JSON.stringify does. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    member !== null && typeof member === 'object' && !Array.isArray(member) && !(member instanceof Date)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : member,
  );
}

/** Whether both are the same as JSON: the order of keys means nothing, nor does a member that is undefined. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isPlain(a) && isPlain(b)) return sameMembers(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => sameJson(item ?? null, b[index] ?? null));
  }
  if (typeof a === 'string' && typeof b === 'string') return false;
  if (a === null || b === null) {
    const other = a ?? b;
    if (Array.isArray(other) || isPlain(other)) return false;
  }
  // Two of different forms may still be written alike: a moment, and its text.
  return canonicalJson(a) === canonicalJson(b);
}

function sameMembers(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const keys = Object.keys(a).filter((key) => a[key] !== undefined);
  return (
    keys.length === Object.keys(b).filter((key) => b[key] !== undefined).length &&
    keys.every((key) => Object.hasOwn(b, key) && b[key] !== undefined && sameJson(a[key], b[key]))
  );
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype &&
    !('toJSON' in value)
  );
}

const JSON_DEPTH_MAX = 32;

/** A JSON object of at most `maxBytes` bytes and JSON_DEPTH_MAX levels that a jsonb column can hold as it is. */
export function jsonObjectSchema(maxBytes: number) {
  return z.custom<JsonObject>().check((context) => {
    const problem = jsonObjectProblem(context.value, maxBytes);
    if (problem !== undefined) {
      context.issues.push({ code: 'custom', message: problem, input: context.value });
    }
  });
}

function jsonObjectProblem(value: unknown, maxBytes: number): string | undefined {
  if (!isObject(value)) return 'must be a JSON object';
  const problem = jsonProblem(value, 1);
  if (problem !== undefined) return problem;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > maxBytes ? `must have at most ${maxBytes} bytes as JSON, has ${bytes}` : undefined;
}

function jsonProblem(value: unknown, depth: number): string | undefined {
  if (depth > JSON_DEPTH_MAX) return `must nest at most ${JSON_DEPTH_MAX} levels`;
  switch (typeof value) {
    case 'string':
      return storable(value) ? undefined : 'must be well-formed Unicode without NUL';
    case 'number':
      return Number.isFinite(value) ? undefined : 'must have finite numbers only';
    case 'boolean':
      return undefined;
    case 'object': {
      if (value === null) return undefined;
      for (const [key, member] of Object.entries(value)) {
        const problem = storable(key)
          ? jsonProblem(member, depth + 1)
          : 'must have well-formed keys without NUL';
        if (problem !== undefined) return problem;
      }
      return undefined;
    }
    case 'undefined':
    case 'function':
    case 'symbol':
    case 'bigint':
      return `must not hold a ${typeof value}`;
  }
}
