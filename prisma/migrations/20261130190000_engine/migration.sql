-- What the engine works with: its turns at deployments and runtimes, instances, secrets, what was observed.

CREATE TYPE "ResourceLifecycle" AS ENUM ('FROZEN', 'LIVE');
CREATE TYPE "InstanceStatus" AS ENUM ('PENDING', 'QUEUED', 'PROVISIONING', 'READY', 'UNHEALTHY', 'FAILED', 'CANCELLED', 'DELETE_SCHEDULED', 'DELETING', 'DELETED', 'DELETE_FAILED');
CREATE TYPE "InstanceHealth" AS ENUM ('UNKNOWN', 'HEALTHY', 'DEGRADED', 'UNHEALTHY');
ALTER TYPE "ObjectKind" ADD VALUE 'INSTANCE';
ALTER TABLE "deployment" ADD COLUMN     "auto_rollback" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "depends_on" TEXT[] DEFAULT ARRAY[]::TEXT[],
ADD COLUMN     "progress_deadline_seconds" INTEGER NOT NULL DEFAULT 600;
CREATE TABLE "deployment_work" (
    "deployment_id" TEXT NOT NULL,
    "host" TEXT,
    "fence" BIGINT NOT NULL DEFAULT 0,
    "lease_owner" TEXT,
    "lease_expires_at" TIMESTAMPTZ(3),
    "next_step_at" TIMESTAMPTZ(3),
    "tries" INTEGER NOT NULL DEFAULT 0,
    "progress_since" TIMESTAMPTZ(3),
    "wakes" BIGINT NOT NULL DEFAULT 0,
    "teardown_requested" BOOLEAN NOT NULL DEFAULT false,
    "force_token" TEXT,
    CONSTRAINT "deployment_work_pkey" PRIMARY KEY ("deployment_id")
) WITH (fillfactor = 50);
CREATE TABLE "deployment_secret" (
    "deployment_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "key_id" TEXT NOT NULL,
    "sealed" BYTEA NOT NULL,
    CONSTRAINT "deployment_secret_pkey" PRIMARY KEY ("deployment_id","name")
);
CREATE TABLE "deployment_observation" (
    "deployment_id" TEXT NOT NULL,
    "last_heartbeat_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "deployment_observation_pkey" PRIMARY KEY ("deployment_id")
);
CREATE TABLE "instance" (
    "id" TEXT NOT NULL,
    "namespace" TEXT NOT NULL,
    "deployment_id" TEXT NOT NULL,
    "resource_name" TEXT NOT NULL,
    "service_type" TEXT NOT NULL,
    "lifecycle" "ResourceLifecycle" NOT NULL,
    "agent_id" TEXT,
    "assignment" INTEGER NOT NULL DEFAULT 1,
    "status" "InstanceStatus" NOT NULL DEFAULT 'PENDING',
    "health" "InstanceHealth" NOT NULL DEFAULT 'UNKNOWN',
    "status_message" TEXT,
    "outputs" JSONB NOT NULL DEFAULT '{}',
    "error" JSONB,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "waiting_since" TIMESTAMPTZ(3),
    "deleted_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_by" TEXT,
    "change_reason" TEXT,
    "change_message" TEXT,
    "trace_id" TEXT,
    "change_token" TEXT,
    CONSTRAINT "instance_pkey" PRIMARY KEY ("id")
) WITH (fillfactor = 80);
CREATE TABLE "instance_observation" (
    "instance_id" TEXT NOT NULL,
    "last_observed_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "instance_observation_pkey" PRIMARY KEY ("instance_id")
);
CREATE TABLE "instance_internal" (
    "instance_id" TEXT NOT NULL,
    "data" JSONB NOT NULL DEFAULT '{}',
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT "instance_internal_pkey" PRIMARY KEY ("instance_id")
);
CREATE TABLE "runtime_work" (
    "runtime_id" TEXT NOT NULL,
    "host" TEXT,
    "fence" BIGINT NOT NULL DEFAULT 0,
    "lease_owner" TEXT,
    "lease_expires_at" TIMESTAMPTZ(3),
    "next_poll_at" TIMESTAMPTZ(3),
    CONSTRAINT "runtime_work_pkey" PRIMARY KEY ("runtime_id")
);
CREATE TABLE "observed_resource" (
    "runtime_id" TEXT NOT NULL,
    "scope" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "version" TEXT,
    "labels" JSONB NOT NULL DEFAULT '{}',
    "observed_at" TIMESTAMPTZ(3) NOT NULL,
    "gone_at" TIMESTAMPTZ(3),
    CONSTRAINT "observed_resource_pkey" PRIMARY KEY ("runtime_id","scope","key")
);
-- Most deployments are settled and wait for nothing: their rows are not in it.
CREATE INDEX "deployment_work_next_step_at_idx" ON "deployment_work"("next_step_at") WHERE "next_step_at" IS NOT NULL;
CREATE INDEX "instance_created_at_id_idx" ON "instance"("created_at", "id");
CREATE INDEX "instance_namespace_created_at_id_idx" ON "instance"("namespace", "created_at", "id");
CREATE INDEX "instance_deployment_id_created_at_id_idx" ON "instance"("deployment_id", "created_at", "id");
CREATE INDEX "runtime_work_next_poll_at_idx" ON "runtime_work"("next_poll_at") WHERE "next_poll_at" IS NOT NULL;
ALTER TABLE "deployment_work" ADD CONSTRAINT "deployment_work_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "deployment_secret" ADD CONSTRAINT "deployment_secret_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "deployment_observation" ADD CONSTRAINT "deployment_observation_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "instance" ADD CONSTRAINT "instance_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "instance_observation" ADD CONSTRAINT "instance_observation_instance_id_fkey" FOREIGN KEY ("instance_id") REFERENCES "instance"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "instance_internal" ADD CONSTRAINT "instance_internal_instance_id_fkey" FOREIGN KEY ("instance_id") REFERENCES "instance"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "runtime_work" ADD CONSTRAINT "runtime_work_runtime_id_fkey" FOREIGN KEY ("runtime_id") REFERENCES "runtime"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "observed_resource" ADD CONSTRAINT "observed_resource_runtime_id_fkey" FOREIGN KEY ("runtime_id") REFERENCES "runtime"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Guards ------------------------------------------------------------------------------------------------------------
-- One instance for each resource of a deployment that is not deleted.
CREATE UNIQUE INDEX "instance_live_resource_key" ON "instance"("deployment_id", "resource_name") WHERE "deleted_at" IS NULL;
ALTER TABLE "instance" ADD CONSTRAINT "instance_deleted_status" CHECK (("status" = 'DELETED') = ("deleted_at" IS NOT NULL));
ALTER TABLE "instance" ADD CONSTRAINT "instance_moments" CHECK ("waiting_since" >= '0001-01-01 00:00:00+00' AND "waiting_since" < '10000-01-01 00:00:00+00' AND "deleted_at" >= '0001-01-01 00:00:00+00' AND "deleted_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "instance_observation" ADD CONSTRAINT "instance_observation_moments" CHECK ("last_observed_at" >= '0001-01-01 00:00:00+00' AND "last_observed_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "deployment_observation" ADD CONSTRAINT "deployment_observation_moments" CHECK ("last_heartbeat_at" >= '0001-01-01 00:00:00+00' AND "last_heartbeat_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "observed_resource" ADD CONSTRAINT "observed_resource_moments" CHECK ("observed_at" >= '0001-01-01 00:00:00+00' AND "observed_at" < '10000-01-01 00:00:00+00' AND "gone_at" >= '0001-01-01 00:00:00+00' AND "gone_at" < '10000-01-01 00:00:00+00');

-- The log's writer ---------------------------------------------------------------------------------------------------
CREATE FUNCTION "slipway_log_instance"() RETURNS trigger LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('INSTANCE', NEW.id, NEW.namespace, 'INSERT', NEW.version, NULL, NEW.status::text, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'deploymentId', NEW.deployment_id, 'resourceName', NEW.resource_name, 'serviceType', NEW.service_type, 'lifecycle', NEW.lifecycle, 'agentId', NEW.agent_id, 'assignment', NEW.assignment, 'status', NEW.status, 'health', NEW.health, 'statusMessage', NEW.status_message, 'outputs', NEW.outputs, 'error', NEW.error, 'attempts', NEW.attempts, 'waitingSince', NEW.waiting_since, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), NULL::jsonb FROM c;
    ELSIF TG_OP = 'UPDATE' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('INSTANCE', NEW.id, NEW.namespace, CASE WHEN NEW.deleted_at IS NOT NULL AND NOT (OLD.deleted_at IS NOT NULL) THEN 'DELETE'::public."ChangeOp" ELSE 'UPDATE'::public."ChangeOp" END, NEW.version, OLD.status::text, NEW.status::text, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'deploymentId', NEW.deployment_id, 'resourceName', NEW.resource_name, 'serviceType', NEW.service_type, 'lifecycle', NEW.lifecycle, 'agentId', NEW.agent_id, 'assignment', NEW.assignment, 'status', NEW.status, 'health', NEW.health, 'statusMessage', NEW.status_message, 'outputs', NEW.outputs, 'error', NEW.error, 'attempts', NEW.attempts, 'waitingSince', NEW.waiting_since, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), jsonb_build_object('deploymentId', OLD.deployment_id, 'resourceName', OLD.resource_name, 'serviceType', OLD.service_type, 'status', OLD.status, 'health', OLD.health, 'agentId', OLD.agent_id, 'deletedAt', OLD.deleted_at) FROM c;
    ELSE
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('INSTANCE', OLD.id, OLD.namespace, 'DELETE', OLD.version + 1, OLD.status::text, NULL, NULL, NULL, 'sql:' || session_user, NULL)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', OLD.id, 'namespace', OLD.namespace, 'deploymentId', OLD.deployment_id, 'resourceName', OLD.resource_name, 'serviceType', OLD.service_type, 'lifecycle', OLD.lifecycle, 'agentId', OLD.agent_id, 'assignment', OLD.assignment, 'status', OLD.status, 'health', OLD.health, 'statusMessage', OLD.status_message, 'outputs', OLD.outputs, 'error', OLD.error, 'attempts', OLD.attempts, 'waitingSince', OLD.waiting_since, 'deletedAt', OLD.deleted_at, 'version', OLD.version, 'createdAt', OLD.created_at, 'updatedAt', OLD.updated_at), jsonb_build_object('deploymentId', OLD.deployment_id, 'resourceName', OLD.resource_name, 'serviceType', OLD.service_type, 'status', OLD.status, 'health', OLD.health, 'agentId', OLD.agent_id, 'deletedAt', OLD.deleted_at) FROM c;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER "guard_insert" BEFORE INSERT ON "instance" FOR EACH ROW EXECUTE FUNCTION "slipway_guard_insert"();
CREATE TRIGGER "guard_update" BEFORE UPDATE ON "instance" FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION "slipway_guard_update"();
CREATE TRIGGER "guard_namespace" BEFORE UPDATE ON "instance" FOR EACH ROW WHEN (OLD.namespace <> NEW.namespace) EXECUTE FUNCTION "slipway_guard_namespace"();
CREATE TRIGGER "log_update" AFTER UPDATE ON "instance" FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION "slipway_log_instance"();
CREATE TRIGGER "log_insert" AFTER INSERT ON "instance" FOR EACH ROW EXECUTE FUNCTION "slipway_log_instance"();
CREATE TRIGGER "log_delete" AFTER DELETE ON "instance" FOR EACH ROW WHEN (NOT (OLD.deleted_at IS NOT NULL)) EXECUTE FUNCTION "slipway_log_instance"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "instance" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();

-- The read role ------------------------------------------------------------------------------------------------------
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'slipway_read') THEN
        GRANT SELECT (id, namespace, deployment_id, resource_name, service_type, lifecycle, agent_id, assignment, status, health, status_message, outputs, error, attempts, waiting_since, deleted_at, version, created_at, updated_at) ON "instance" TO slipway_read;
        GRANT SELECT (depends_on, progress_deadline_seconds, auto_rollback) ON "deployment" TO slipway_read;
        GRANT SELECT ON "instance_observation", "deployment_observation", "observed_resource" TO slipway_read;
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'no right to grant to the role slipway_read: reads will run as the owner';
END $$;
