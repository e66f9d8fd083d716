/** Rows of the log for unit tests: one object type, a filter that looks at `app`. */
import type { DecodedRow } from '../../../src/changes/catalogue.js';
import type { Change } from '../../../src/changes/types.js';

export interface RowOptions {
  readonly seq: number;
  readonly xid?: bigint;
  readonly objectId?: string;
  readonly namespace?: string;
  readonly app?: string;
  readonly before?: { readonly app: string } | null;
  readonly op?: Change['op'];
  readonly bytes?: number;
  readonly kind?: Change['kind'];
}

export function row(options: RowOptions): DecodedRow {
  const {
    seq,
    xid = BigInt(seq),
    objectId = 'dep_1',
    namespace = 'default',
    app = 'shop',
    op = 'UPDATE',
  } = options;
  const change = {
    seq: BigInt(seq),
    kind: options.kind ?? 'DEPLOYMENT',
    objectId,
    namespace,
    op,
    version: seq,
    after: { id: objectId, app, deletedAt: null },
    before: options.before === undefined ? { app } : options.before,
    cursor: `cursor-${seq}`,
  } as unknown as Change; // the fields that the code under test reads
  return { change, xid, bytes: options.bytes ?? 100 };
}
