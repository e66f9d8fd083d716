/**
 * The documents that an operator trusts: those that its own clients were built with. Which they are is told by the sha256
 * of their text, so one check holds for HTTP, event streams and WebSocket; over HTTP a client may send the hash alone.
 */
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';

import { StartError } from '../kernel/start-error.js';

export type TrustedDocumentsMode = 'off' | 'log' | 'enforce';

export interface TrustedDocuments {
  /** `log`: others run too, and are logged by their hash. */
  readonly mode: Exclude<TrustedDocumentsMode, 'off'>;
  /** The text of `sha256:<hex>`, or undefined. */
  textOf(documentId: string): string | undefined;
  has(text: string): boolean;
}

const FILE_BYTES_MAX = 16 * 1024 * 1024;
const PREFIX = 'sha256:';

/** `sha256:<hex>` of a document's text, as code generators name it. */
export function documentIdOf(text: string): string {
  return PREFIX + createHash('sha256').update(text).digest('hex');
}

/**
 * Reads a file `{"sha256:<hex>": "<document>"}`, such as `src/client/generated/persisted-documents.json`. Throws a StartError that names
 * SLIPWAY_TRUSTED_DOCUMENTS if it cannot be used.
 */
export function readTrustedDocuments(file: string, mode: TrustedDocuments['mode']): TrustedDocuments {
  const refuse = (why: string, cause?: unknown) =>
    new StartError(`SLIPWAY_TRUSTED_DOCUMENTS: the file ${why}.`, { cause });
  let parsed: unknown;
  try {
    if (statSync(file).size > FILE_BYTES_MAX) throw refuse(`is larger than ${FILE_BYTES_MAX} bytes`);
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw refuse('cannot be read as JSON', error);
  }
  if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) {
    throw refuse('must hold one object of documents by their hash');
  }
  const texts = new Map<string, string>();
  // An object: the line above says so.
  for (const [documentId, text] of Object.entries(parsed as Record<string, unknown>)) {
    if (typeof text !== 'string' || documentIdOf(text) !== documentId) {
      throw refuse(
        `has an entry ${JSON.stringify(documentId.slice(0, 80))} that is not the sha256 of its document`,
      );
    }
    texts.set(documentId, text);
  }
  return {
    mode,
    textOf: (documentId) => texts.get(documentId),
    has: (text) => texts.has(documentIdOf(text)),
  };
}
