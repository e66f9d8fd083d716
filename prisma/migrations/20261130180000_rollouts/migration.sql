-- Rollouts and the deploy lock: attempts to change what a deployment runs, at most one unfinished for each.

CREATE TYPE "RolloutOperation" AS ENUM ('DEPLOY', 'UPDATE', 'ROLLBACK', 'REDEPLOY', 'CONFIG_CHANGE', 'RETRY', 'UNDEPLOY', 'DELETE');
CREATE TYPE "RolloutPhase" AS ENUM ('PREPARING', 'BUILDING', 'PUSHING', 'ACTIVATING');
CREATE TYPE "RolloutOutcome" AS ENUM ('SUCCEEDED', 'FAILED', 'CANCELLED', 'INTERRUPTED');
ALTER TYPE "ObjectKind" ADD VALUE 'ROLLOUT';
CREATE TABLE "deploy_lock" (
    "deployment_id" TEXT NOT NULL,
    "namespace" TEXT NOT NULL,
    "rollout_id" TEXT NOT NULL,
    "started_by" TEXT NOT NULL,
    "acquired_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "deploy_lock_pkey" PRIMARY KEY ("deployment_id")
);
CREATE TABLE "rollout" (
    "id" TEXT NOT NULL,
    "namespace" TEXT NOT NULL,
    "deployment_id" TEXT NOT NULL,
    "operation" "RolloutOperation" NOT NULL,
    "phase" "RolloutPhase" NOT NULL DEFAULT 'PREPARING',
    "activated_at" TIMESTAMPTZ(3),
    "cancel_requested_at" TIMESTAMPTZ(3),
    "outcome" "RolloutOutcome",
    "from_release_id" TEXT,
    "to_release_id" TEXT,
    "source" JSONB,
    "log_url" TEXT,
    "parent_rollout_id" TEXT,
    "started_by" TEXT NOT NULL,
    "finished_at" TIMESTAMPTZ(3),
    "message" TEXT,
    "error" JSONB,
    "deleted_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_by" TEXT,
    "change_reason" TEXT,
    "change_message" TEXT,
    "trace_id" TEXT,
    "change_token" TEXT,
    CONSTRAINT "rollout_pkey" PRIMARY KEY ("id")
) WITH (fillfactor = 80);
-- At most one unfinished rollout for each deployment: whoever takes an expired lock ends the one before in the same transaction.
CREATE UNIQUE INDEX "rollout_unfinished_key" ON "rollout"("deployment_id") WHERE "outcome" IS NULL;
CREATE INDEX "rollout_created_at_id_idx" ON "rollout"("created_at", "id");
CREATE INDEX "rollout_namespace_created_at_id_idx" ON "rollout"("namespace", "created_at", "id");
CREATE INDEX "rollout_deployment_id_created_at_id_idx" ON "rollout"("deployment_id", "created_at", "id");
-- Lists by what is rare: a failure, a rollback, what is being built, what moved to a release. The first also has what is not
-- finished, for the reconciler.
CREATE INDEX "rollout_outcome_created_at_id_idx" ON "rollout"("outcome", "created_at", "id");
CREATE INDEX "rollout_operation_created_at_id_idx" ON "rollout"("operation", "created_at", "id");
CREATE INDEX "rollout_phase_created_at_id_idx" ON "rollout"("phase", "created_at", "id");
CREATE INDEX "rollout_to_release_id_created_at_id_idx" ON "rollout"("to_release_id", "created_at", "id");
ALTER TABLE "deploy_lock" ADD CONSTRAINT "deploy_lock_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "rollout" ADD CONSTRAINT "rollout_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "rollout" ADD CONSTRAINT "rollout_from_release_id_fkey" FOREIGN KEY ("from_release_id") REFERENCES "release"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "rollout" ADD CONSTRAINT "rollout_to_release_id_fkey" FOREIGN KEY ("to_release_id") REFERENCES "release"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Guards ------------------------------------------------------------------------------------------------------------
-- SQLSTATE SL006: an outcome that would change. No code path, psql included, rewrites how a rollout ended.
CREATE FUNCTION "slipway_guard_outcome"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the outcome of rollout % is %, which never changes', OLD.id, OLD.outcome USING ERRCODE = 'SL006';
END $$;
ALTER TABLE "rollout" ADD CONSTRAINT "rollout_finished" CHECK (("outcome" IS NULL) = ("finished_at" IS NULL));
ALTER TABLE "rollout" ADD CONSTRAINT "rollout_moments" CHECK ("activated_at" >= '0001-01-01 00:00:00+00' AND "activated_at" < '10000-01-01 00:00:00+00' AND "cancel_requested_at" >= '0001-01-01 00:00:00+00' AND "cancel_requested_at" < '10000-01-01 00:00:00+00' AND "finished_at" >= '0001-01-01 00:00:00+00' AND "finished_at" < '10000-01-01 00:00:00+00' AND "deleted_at" >= '0001-01-01 00:00:00+00' AND "deleted_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "deploy_lock" ADD CONSTRAINT "deploy_lock_moments" CHECK ("acquired_at" >= '0001-01-01 00:00:00+00' AND "acquired_at" < '10000-01-01 00:00:00+00' AND "expires_at" >= '0001-01-01 00:00:00+00' AND "expires_at" < '10000-01-01 00:00:00+00');

-- The lock ----------------------------------------------------------------------------------------------------------
-- Whether a lock may be taken: the one answer to "is it locked?" and to "may I take it?". A holder that is not there may
-- not have been written yet: it holds until it expires. The boundary instant counts as expired.
CREATE FUNCTION "slipway_lock_free"(rollout text, expires timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT expires <= now() OR EXISTS (SELECT FROM public.rollout r WHERE r.id = rollout AND r.outcome IS NOT NULL)
$$;
-- Locks that hold, as users see them.
CREATE VIEW "deploy_lock_held" AS
SELECT l.deployment_id, jsonb_build_object('deploymentId', l.deployment_id, 'rolloutId', l.rollout_id, 'startedBy', l.started_by, 'acquiredAt', l.acquired_at, 'expiresAt', l.expires_at) AS lock
FROM public.deploy_lock l WHERE NOT public.slipway_lock_free(l.rollout_id, l.expires_at);
-- What may be done about the rollouts of a deployment: the one that is under way, and the release that last succeeded beside
-- the one that is wanted.
CREATE VIEW "deployment_attempts" AS
SELECT d.id AS deployment_id,
    (SELECT jsonb_build_object('operation', r.operation, 'active', r.activated_at IS NOT NULL, 'cancelRequested', r.cancel_requested_at IS NOT NULL)
       FROM public.rollout r WHERE r.deployment_id = d.id AND r.outcome IS NULL) AS unfinished,
    (SELECT r.to_release_id FROM public.rollout r
      WHERE r.deployment_id = d.id AND r.outcome = 'SUCCEEDED' AND r.to_release_id IS NOT NULL
        AND r.to_release_id IS DISTINCT FROM coalesce(d.target_release_id, d.current_release_id)
      ORDER BY r.created_at DESC, r.id DESC LIMIT 1) AS previous_release_id
FROM public.deployment d;

-- The log's writer ---------------------------------------------------------------------------------------------------
-- As for every other kind. A rollout's state in the log is its outcome, and until it has one its phase.
CREATE FUNCTION "slipway_log_rollout"() RETURNS trigger LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('ROLLOUT', NEW.id, NEW.namespace, 'INSERT', NEW.version, NULL, coalesce(NEW.outcome::text, NEW.phase::text), NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'deploymentId', NEW.deployment_id, 'operation', NEW.operation, 'phase', NEW.phase, 'activatedAt', NEW.activated_at, 'cancelRequestedAt', NEW.cancel_requested_at, 'outcome', NEW.outcome, 'fromReleaseId', NEW.from_release_id, 'toReleaseId', NEW.to_release_id, 'source', NEW.source, 'logUrl', NEW.log_url, 'parentRolloutId', NEW.parent_rollout_id, 'startedBy', NEW.started_by, 'finishedAt', NEW.finished_at, 'message', NEW.message, 'error', NEW.error, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), NULL::jsonb FROM c;
    ELSIF TG_OP = 'UPDATE' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('ROLLOUT', NEW.id, NEW.namespace, CASE WHEN NEW.deleted_at IS NOT NULL AND NOT (OLD.deleted_at IS NOT NULL) THEN 'DELETE'::public."ChangeOp" ELSE 'UPDATE'::public."ChangeOp" END, NEW.version, coalesce(OLD.outcome::text, OLD.phase::text), coalesce(NEW.outcome::text, NEW.phase::text), NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'deploymentId', NEW.deployment_id, 'operation', NEW.operation, 'phase', NEW.phase, 'activatedAt', NEW.activated_at, 'cancelRequestedAt', NEW.cancel_requested_at, 'outcome', NEW.outcome, 'fromReleaseId', NEW.from_release_id, 'toReleaseId', NEW.to_release_id, 'source', NEW.source, 'logUrl', NEW.log_url, 'parentRolloutId', NEW.parent_rollout_id, 'startedBy', NEW.started_by, 'finishedAt', NEW.finished_at, 'message', NEW.message, 'error', NEW.error, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), jsonb_build_object('deploymentId', OLD.deployment_id, 'operation', OLD.operation, 'phase', OLD.phase, 'outcome', OLD.outcome, 'toReleaseId', OLD.to_release_id, 'deletedAt', OLD.deleted_at) FROM c;
    ELSE
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('ROLLOUT', OLD.id, OLD.namespace, 'DELETE', OLD.version + 1, coalesce(OLD.outcome::text, OLD.phase::text), NULL, NULL, NULL, 'sql:' || session_user, NULL)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', OLD.id, 'namespace', OLD.namespace, 'deploymentId', OLD.deployment_id, 'operation', OLD.operation, 'phase', OLD.phase, 'activatedAt', OLD.activated_at, 'cancelRequestedAt', OLD.cancel_requested_at, 'outcome', OLD.outcome, 'fromReleaseId', OLD.from_release_id, 'toReleaseId', OLD.to_release_id, 'source', OLD.source, 'logUrl', OLD.log_url, 'parentRolloutId', OLD.parent_rollout_id, 'startedBy', OLD.started_by, 'finishedAt', OLD.finished_at, 'message', OLD.message, 'error', OLD.error, 'deletedAt', OLD.deleted_at, 'version', OLD.version, 'createdAt', OLD.created_at, 'updatedAt', OLD.updated_at), jsonb_build_object('deploymentId', OLD.deployment_id, 'operation', OLD.operation, 'phase', OLD.phase, 'outcome', OLD.outcome, 'toReleaseId', OLD.to_release_id, 'deletedAt', OLD.deleted_at) FROM c;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER "guard_insert" BEFORE INSERT ON "rollout" FOR EACH ROW EXECUTE FUNCTION "slipway_guard_insert"();
CREATE TRIGGER "guard_update" BEFORE UPDATE ON "rollout" FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION "slipway_guard_update"();
CREATE TRIGGER "guard_namespace" BEFORE UPDATE ON "rollout" FOR EACH ROW WHEN (OLD.namespace <> NEW.namespace) EXECUTE FUNCTION "slipway_guard_namespace"();
CREATE TRIGGER "guard_outcome" BEFORE UPDATE ON "rollout" FOR EACH ROW WHEN (OLD.outcome IS NOT NULL AND OLD.outcome IS DISTINCT FROM NEW.outcome) EXECUTE FUNCTION "slipway_guard_outcome"();
CREATE TRIGGER "log_update" AFTER UPDATE ON "rollout" FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION "slipway_log_rollout"();
CREATE TRIGGER "log_insert" AFTER INSERT ON "rollout" FOR EACH ROW EXECUTE FUNCTION "slipway_log_rollout"();
CREATE TRIGGER "log_delete" AFTER DELETE ON "rollout" FOR EACH ROW WHEN (NOT (OLD.deleted_at IS NOT NULL)) EXECUTE FUNCTION "slipway_log_rollout"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "rollout" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();

-- The read role ------------------------------------------------------------------------------------------------------
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'slipway_read') THEN
        GRANT SELECT (id, namespace, deployment_id, operation, phase, activated_at, cancel_requested_at, outcome, from_release_id, to_release_id, source, log_url, parent_rollout_id, started_by, finished_at, message, error, deleted_at, version, created_at, updated_at) ON "rollout" TO slipway_read;
        GRANT SELECT ON "deploy_lock_held", "deployment_attempts" TO slipway_read;
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'no right to grant to the role slipway_read: reads will run as the owner';
END $$;
