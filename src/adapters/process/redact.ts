import type { EnvVariable } from '../contract.js';

/** Shorter values stand in ordinary text by chance. */
const SECRET_MIN = 4;

/** Blanks the values of secret variables out of what programs wrote, should they have written them. */
export function redactor(env: readonly EnvVariable[]): (text: string) => string {
  const values = env
    .filter(({ secret, value }) => secret && value.length >= SECRET_MIN)
    .flatMap(({ value }) => [value, ...value.split('\n').filter((line) => line.length >= SECRET_MIN)])
    // The longer first: one may stand within another.
    .sort((a, b) => b.length - a.length);
  if (values.length === 0) return (text) => text;
  return (text) => values.reduce((clean, value) => clean.replaceAll(value, '***'), text);
}
