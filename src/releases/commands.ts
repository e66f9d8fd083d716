import { authorise } from '../access/authorise.js';
import type { Caller } from '../access/caller.js';
import { idempotentRequest } from '../access/idempotent-request.js';
import { stampOf } from '../access/stamp.js';
import type { Clock } from '../kernel/clock.js';
import { done, notFound, refused, type Failure, type Outcome } from '../kernel/failure.js';
import { newId } from '../kernel/ids.js';
import { validated } from '../kernel/validate.js';
import type { Database, Queryable } from '../store/database.js';
import { idempotently, type ResultCodec } from '../store/idempotency.js';
import { rowFromJson, rowToJson } from '../store/row-json.js';
import type { ReleaseRow } from '../store/rows.js';
import { createReleaseSchema, type CreateReleaseInput } from './input.js';
import { releaseInsert, releaseReadReferred } from './store.js';

export interface ReleaseDeps {
  readonly database: Database;
  readonly clock: Clock;
}

export type ReleaseOutcome = Outcome<ReleaseRow, Failure<never>>;

export interface ReleaseCommands {
  /** A label is taken once per app, for good: taken already, it is AlreadyExists, also with equal content. */
  createRelease(caller: Caller, input: CreateReleaseInput): Promise<ReleaseOutcome>;
}

const CODEC: ResultCodec<ReleaseRow> = {
  what: 'release',
  namespaceOf: (row) => row.namespace,
  objectId: (row) => row.id,
  toJson: rowToJson,
  fromJson: (json) => rowFromJson('release', json),
};

export function releaseCommands(deps: ReleaseDeps): ReleaseCommands {
  const { database } = deps;
  return {
    async createRelease(caller, input) {
      const parsed = validated(createReleaseSchema, input);
      if (!parsed.done) return parsed;
      const { namespace, app, label, description, resources, source, idempotencyKey } = parsed.value;
      const grant = authorise(caller, 'release:write', { namespace });
      if (!grant) return notFound('namespace');

      const values = {
        namespace,
        app,
        label,
        description: description ?? null,
        resources,
        source: source ?? null,
      };
      const create = async (db: Queryable): Promise<ReleaseOutcome> => {
        const row = await releaseInsert(db, grant, newId('RELEASE'), values, stampOf(grant, 'Created'));
        if (row) return done(row);
        const existing = await releaseReadReferred(db, grant, namespace, { app, label });
        const message = `\`label\`: the app \`${app}\` has a release \`${label}\` already, and releases never change.`;
        return refused({ kind: 'AlreadyExists', message, existingId: existing?.id ?? null });
      };
      if (idempotencyKey === undefined) return create(database.writer);
      const request = idempotentRequest(caller, 'createRelease', idempotencyKey, parsed.value);
      return idempotently(deps, request, CODEC, create);
    },
  };
}
