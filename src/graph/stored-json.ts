/**
 * The content of a jsonb column whose shape was checked when it was written. Fields of it that may be absent are nullable
 * in the schema, so that rows of an older server still read.
 */
export function storedJson<T>(value: unknown): T {
  return value as T; // every writer goes through the domain's input schema of the same shape
}
