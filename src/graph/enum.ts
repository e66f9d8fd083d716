import type { EnumRef } from '@pothos/core';

import type { Builder, Types } from './graph-types.js';

/**
 * An enumeration from the domain's own list of values. The record of descriptions is total: a new value does not
 * compile until somebody says what it means.
 */
export function addEnum<V extends string>(
  builder: Builder,
  name: string,
  description: string,
  values: Readonly<Record<V, string>>,
): EnumRef<Types, V> {
  const described = Object.entries<string>(values).map(
    ([value, meaning]) => [value, { description: meaning }] as const,
  );
  const byName: Record<string, { description: string }> = Object.fromEntries(described);
  return builder.enumType(name, { description, values: byName }) as unknown as EnumRef<Types, V>; // fromEntries forgets which keys there were
}
