import { GraphQLError, Kind, valueFromASTUntyped } from 'graphql';

import { FIRST_MOMENT, LAST_MOMENT, parseMoment } from '../kernel/clock.js';
import type { JsonObject } from '../kernel/json.js';
import type { Builder } from './graph-types.js';

/** Longer than any cursor of ours; what is longer was never one. */
const CURSOR_MAX_CHARACTERS = 4_096;

export function addScalars(builder: Pick<Builder, 'scalarType'>): void {
  builder.scalarType('DateTime', {
    description: 'A moment in UTC with milliseconds, as ISO 8601 writes it: `2026-11-30T12:00:00.000Z`.',
    serialize: dateTimeText,
    parseValue: (value) => {
      const moment = typeof value === 'string' ? parseMoment(value) : undefined;
      if (!moment) {
        throw new GraphQLError('DateTime must be ISO 8601 text such as `2026-11-30T12:00:00.000Z`.');
      }
      return moment;
    },
  });
  builder.scalarType('ChangeCursor', {
    description:
      'An opaque place in the change log. Give it back as `after` to go on from there, on any server of this installation. It is no page cursor.',
    parseValue: (value) => {
      if (typeof value !== 'string' || value.length === 0 || value.length > CURSOR_MAX_CHARACTERS) {
        throw new GraphQLError('This is no change cursor.', { extensions: { code: 'CURSOR_INVALID' } });
      }
      return value;
    },
  });
  builder.scalarType('JSONObject', {
    description: 'A JSON object.',
    parseValue: asObject,
    parseLiteral: (node, variables) => {
      if (node.kind !== Kind.OBJECT) throw new GraphQLError('JSONObject must be an object.');
      return valueFromASTUntyped(node, variables) as JsonObject; // the kind says so
    },
  });
  builder.scalarType('Labels', {
    description:
      'Labels, as an object of text values: `{"team": "web"}`. At most 64; keys and values as Kubernetes writes them (1 to 63 letters, digits, `-`, `_`, `.`; a key may have a DNS prefix and `/`).',
    parseValue: asLabels,
    parseLiteral: (node, variables) => asLabels(valueFromASTUntyped(node, variables)),
  });
}

/**
 * Total, so that one row cannot fail a whole page. What no check of the database lets in comes out as the nearest moment
 * that clients can read; for what is no moment at all, `infinity` in a driver's hands, that is the last one.
 */
export function dateTimeText(value: Date | number): string {
  const milliseconds = Number(value);
  if (milliseconds < FIRST_MOMENT.getTime()) return FIRST_MOMENT.toISOString();
  return milliseconds <= LAST_MOMENT.getTime()
    ? new Date(milliseconds).toISOString()
    : LAST_MOMENT.toISOString();
}

function asObject(value: unknown): JsonObject {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new GraphQLError('JSONObject must be an object.');
  }
  return value as JsonObject; // checked on the line above
}

/** Only the shape; the rules of keys and values are the domain's, which names all that are broken. */
function asLabels(value: unknown): Readonly<Record<string, string>> {
  const object = asObject(value);
  // Schemas and copies of objects drop this one key without a word.
  if (Object.hasOwn(object, '__proto__')) throw new GraphQLError('Labels must not have the key `__proto__`.');
  for (const text of Object.values(object)) {
    if (typeof text !== 'string') throw new GraphQLError('Labels must have text values.');
  }
  return object as Readonly<Record<string, string>>; // checked by the loop above
}
