import { z } from 'zod';

export const DEFAULT_NAMESPACE = 'default';
export const NAME_MAX = 63;
const NAME_PATTERN = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Names of namespaces, apps and objects: usable as a DNS label everywhere. */
export const nameSchema = z.string().regex(NAME_PATTERN, {
  error: `must be 1 to ${NAME_MAX} lower-case letters, digits or \`-\`, with a letter or digit at both ends`,
});
