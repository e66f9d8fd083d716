import { createHash, randomBytes } from 'node:crypto';

/**
 * The secret that a token is known by. It has 256 random bits, so a plain sha256 keeps it: there is nothing to guess
 * that a slow hash would make slower. Shown once; the hash alone is stored.
 */
const PATTERN = /^slp_[A-Za-z0-9_-]{32,252}$/;

export function newSecret(): string {
  return `slp_${randomBytes(32).toString('base64url')}`;
}

/** Whether a text can be a secret at all: told from its form, without any work that depends on ours. */
export function isSecret(text: string): boolean {
  return PATTERN.test(text);
}

export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
