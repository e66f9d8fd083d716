-- The foundation: every object, its internal twin, the change log and the guards that write and protect it.
--
-- The database itself writes the log (row triggers below), so no code path can change an object without its change
-- row. Every function names its tables with their schema, so that nobody's search_path can divert the log.

-- Types -------------------------------------------------------------------------------------------------------------
CREATE TYPE "DeploymentPhase" AS ENUM ('PENDING', 'PREFLIGHTS_FAILED', 'INITIAL_SETUP', 'INITIAL_SETUP_FAILED', 'PROVISIONING', 'PROVISIONING_FAILED', 'WAITING_FOR_AGENTS', 'RUNNING', 'REFRESH_FAILED', 'UPDATE_PENDING', 'UPDATING', 'UPDATE_FAILED', 'UNDEPLOYING', 'UNDEPLOY_FAILED', 'UNDEPLOYED', 'DELETE_PENDING', 'DELETING', 'DELETE_FAILED', 'TEARDOWN_REQUIRED', 'TEARDOWN_FAILED', 'DELETED', 'ERROR');
CREATE TYPE "DeploymentOrigin" AS ENUM ('MANAGED', 'DISCOVERED');
CREATE TYPE "DesiredState" AS ENUM ('DEPLOYED', 'UNDEPLOYED');
CREATE TYPE "AgentHealth" AS ENUM ('READY', 'CONGESTED', 'UNAVAILABLE');
CREATE TYPE "AgentCost" AS ENUM ('LOW', 'MEDIUM_LOW', 'MEDIUM', 'MEDIUM_HIGH', 'HIGH');
CREATE TYPE "Role" AS ENUM ('VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER', 'AGENT', 'ADMIN');
CREATE TYPE "ObjectKind" AS ENUM ('RUNTIME', 'RELEASE', 'DEPLOYMENT', 'AGENT', 'TOKEN');
CREATE TYPE "ChangeOp" AS ENUM ('INSERT', 'UPDATE', 'DELETE');

-- Objects and their internal twins ----------------------------------------------------------------------------------
-- fillfactor leaves room in a page for the next version of its rows: status patches then touch no index.
CREATE TABLE "runtime" (
    "id" TEXT NOT NULL,
    "namespace" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "environment" TEXT,
    "config" JSONB NOT NULL DEFAULT '{}',
    "labels" JSONB NOT NULL DEFAULT '{}',
    "generation" INTEGER NOT NULL DEFAULT 1,
    "observed_generation" INTEGER NOT NULL DEFAULT 0,
    "conditions" JSONB NOT NULL DEFAULT '[]',
    "deletion_requested_at" TIMESTAMPTZ(3),
    "deleted_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_by" TEXT,
    "change_reason" TEXT,
    "change_message" TEXT,
    "trace_id" TEXT,
    "change_token" TEXT,

    CONSTRAINT "runtime_pkey" PRIMARY KEY ("id")
);
CREATE TABLE "runtime_internal" (
    "runtime_id" TEXT NOT NULL,
    "data" JSONB NOT NULL DEFAULT '{}',
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "runtime_internal_pkey" PRIMARY KEY ("runtime_id")
);
CREATE TABLE "release" (
    "id" TEXT NOT NULL,
    "namespace" TEXT NOT NULL,
    "app" TEXT NOT NULL,
    "label" TEXT NOT NULL,
    "description" TEXT,
    "resources" JSONB NOT NULL,
    "source" JSONB,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_by" TEXT,
    "change_reason" TEXT,
    "change_message" TEXT,
    "trace_id" TEXT,
    "change_token" TEXT,

    CONSTRAINT "release_pkey" PRIMARY KEY ("id")
);
CREATE TABLE "deployment" (
    "id" TEXT NOT NULL,
    "namespace" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "app" TEXT NOT NULL,
    "origin" "DeploymentOrigin" NOT NULL DEFAULT 'MANAGED',
    "runtime_id" TEXT NOT NULL,
    "labels" JSONB NOT NULL DEFAULT '{}',
    "generation" INTEGER NOT NULL DEFAULT 1,
    "desired_state" "DesiredState" NOT NULL DEFAULT 'DEPLOYED',
    "env" JSONB NOT NULL DEFAULT '[]',
    "runtime_config" JSONB NOT NULL DEFAULT '{}',
    "phase" "DeploymentPhase" NOT NULL DEFAULT 'PENDING',
    "conditions" JSONB NOT NULL DEFAULT '[]',
    "observed_generation" INTEGER NOT NULL DEFAULT 0,
    "observed_runtime" JSONB,
    "environment_info" JSONB,
    "error" JSONB,
    "current_release_id" TEXT,
    "target_release_id" TEXT,
    "retry_requested" BOOLEAN NOT NULL DEFAULT false,
    "protocol_version" INTEGER NOT NULL DEFAULT 1,
    "deletion_requested_at" TIMESTAMPTZ(3),
    "deleted_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_by" TEXT,
    "change_reason" TEXT,
    "change_message" TEXT,
    "trace_id" TEXT,
    "change_token" TEXT,

    CONSTRAINT "deployment_pkey" PRIMARY KEY ("id")
) WITH (fillfactor = 80);
CREATE TABLE "deployment_internal" (
    "deployment_id" TEXT NOT NULL,
    "data" JSONB NOT NULL DEFAULT '{}',
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "deployment_internal_pkey" PRIMARY KEY ("deployment_id")
);
CREATE TABLE "agent" (
    "id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "topic" TEXT NOT NULL,
    "environment" TEXT,
    "service_types" TEXT[],
    "cost" "AgentCost" NOT NULL DEFAULT 'MEDIUM',
    "labels" JSONB NOT NULL DEFAULT '{}',
    "health" "AgentHealth" NOT NULL DEFAULT 'READY',
    "cordoned" BOOLEAN NOT NULL DEFAULT false,
    "congestion_threshold" INTEGER NOT NULL DEFAULT 100,
    "software_version" TEXT,
    "protocol_version" INTEGER NOT NULL DEFAULT 1,
    "deleted_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_by" TEXT,
    "change_reason" TEXT,
    "change_message" TEXT,
    "trace_id" TEXT,
    "change_token" TEXT,

    CONSTRAINT "agent_pkey" PRIMARY KEY ("id")
) WITH (fillfactor = 80);
-- One row an agent, rewritten by every heartbeat: half-empty pages keep those rewrites off the index. The health and
-- the threshold are copies (slipway_agent_judged keeps them): a heartbeat then decides by the one row that it locks,
-- and no snapshot of another table can make it decide by what a sweep has just changed.
CREATE TABLE "agent_internal" (
    "agent_id" TEXT NOT NULL,
    "session" TEXT NOT NULL,
    "sequence" BIGINT NOT NULL DEFAULT 0,
    "last_heartbeat_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "consumer_lag" INTEGER NOT NULL DEFAULT 0,
    "health" "AgentHealth" NOT NULL DEFAULT 'READY',
    "congestion_threshold" INTEGER NOT NULL DEFAULT 100,

    CONSTRAINT "agent_internal_pkey" PRIMARY KEY ("agent_id")
) WITH (fillfactor = 50);
CREATE VIEW "agent_liveness" AS SELECT "agent_id", "last_heartbeat_at", "consumer_lag" FROM "agent_internal";
CREATE TABLE "token" (
    "id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "roles" "Role"[],
    "namespaces" TEXT[],
    "agent_name" TEXT,
    "created_by" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_by" TEXT,
    "change_reason" TEXT,
    "change_message" TEXT,
    "trace_id" TEXT,
    "change_token" TEXT,

    CONSTRAINT "token_pkey" PRIMARY KEY ("id")
);
CREATE TABLE "token_use" (
    "token_id" TEXT NOT NULL,
    "last_used_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "token_use_pkey" PRIMARY KEY ("token_id")
);
CREATE TABLE "token_secret" (
    "token_id" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "token_secret_pkey" PRIMARY KEY ("token_id")
);
CREATE TABLE "idempotency_record" (
    "principal" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "payload_hash" TEXT NOT NULL,
    "object_id" TEXT NOT NULL,
    "result" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "idempotency_record_pkey" PRIMARY KEY ("principal","key")
);

-- The change log ----------------------------------------------------------------------------------------------------
-- xid is the transaction that wrote the row: "what became visible between two snapshots" is answered from it alone.
CREATE TABLE "change" (
    "seq" BIGSERIAL NOT NULL,
    "xid" xid8 NOT NULL DEFAULT pg_current_xact_id(),
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "kind" "ObjectKind" NOT NULL,
    "object_id" TEXT NOT NULL,
    "namespace" TEXT,
    "op" "ChangeOp" NOT NULL,
    "version" INTEGER NOT NULL,
    "from_state" TEXT,
    "to_state" TEXT,
    "reason" TEXT,
    "message" TEXT,
    "actor" TEXT NOT NULL,
    "trace_id" TEXT,

    CONSTRAINT "change_pkey" PRIMARY KEY ("seq")
);
CREATE TABLE "change_payload" (
    "seq" BIGINT NOT NULL,
    "after" JSONB,
    "before" JSONB,

    CONSTRAINT "change_payload_pkey" PRIMARY KEY ("seq")
);
CREATE TABLE "log_state" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "epoch" TEXT NOT NULL,
    "system_identifier" TEXT NOT NULL,
    "timeline" INTEGER NOT NULL,
    "floor_xid" xid8 NOT NULL DEFAULT '3'::xid8,
    "floor_seq" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "log_state_pkey" PRIMARY KEY ("id")
);
ALTER TABLE "log_state" ADD CONSTRAINT "log_state_one_row" CHECK ("id" = 1);

-- Indexes -----------------------------------------------------------------------------------------------------------
CREATE INDEX "runtime_created_at_id_idx" ON "runtime"("created_at", "id");
CREATE INDEX "runtime_namespace_created_at_id_idx" ON "runtime"("namespace", "created_at", "id");
CREATE UNIQUE INDEX "runtime_live_name_key" ON "runtime"("namespace", "name") WHERE "deleted_at" IS NULL;
CREATE UNIQUE INDEX "release_namespace_app_label_key" ON "release"("namespace", "app", "label");
CREATE INDEX "release_created_at_id_idx" ON "release"("created_at", "id");
CREATE INDEX "release_namespace_created_at_id_idx" ON "release"("namespace", "created_at", "id");
CREATE INDEX "deployment_created_at_id_idx" ON "deployment"("created_at", "id");
CREATE INDEX "deployment_namespace_created_at_id_idx" ON "deployment"("namespace", "created_at", "id");
CREATE INDEX "deployment_runtime_id_idx" ON "deployment"("runtime_id");
CREATE INDEX "deployment_current_release_id_idx" ON "deployment"("current_release_id");
CREATE INDEX "deployment_target_release_id_idx" ON "deployment"("target_release_id");
-- A deleted deployment gives its name back at once. Told by deleted_at, not by the phase: an index that reads the
-- phase would be rewritten by every status patch.
CREATE UNIQUE INDEX "deployment_live_name_key" ON "deployment"("namespace", "name") WHERE "deleted_at" IS NULL;
ALTER TABLE "deployment" ADD CONSTRAINT "deployment_deleted_phase" CHECK (("phase" = 'DELETED') = ("deleted_at" IS NOT NULL));
CREATE UNIQUE INDEX "agent_name_key" ON "agent"("name");
CREATE UNIQUE INDEX "agent_topic_key" ON "agent"("topic");
CREATE INDEX "agent_created_at_id_idx" ON "agent"("created_at", "id");
CREATE INDEX "token_created_at_id_idx" ON "token"("created_at", "id");
CREATE UNIQUE INDEX "token_secret_hash_key" ON "token_secret"("hash");
CREATE INDEX "idempotency_record_created_at_idx" ON "idempotency_record"("created_at");
CREATE UNIQUE INDEX "change_object_id_version_key" ON "change"("object_id", "version");
-- On xid alone: a covering index, or an OR in the feed's query, makes the planner read the whole log.
CREATE INDEX "change_xid_idx" ON "change"("xid");

ALTER TABLE "runtime_internal" ADD CONSTRAINT "runtime_internal_runtime_id_fkey" FOREIGN KEY ("runtime_id") REFERENCES "runtime"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "deployment" ADD CONSTRAINT "deployment_runtime_id_fkey" FOREIGN KEY ("runtime_id") REFERENCES "runtime"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "deployment" ADD CONSTRAINT "deployment_current_release_id_fkey" FOREIGN KEY ("current_release_id") REFERENCES "release"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "deployment" ADD CONSTRAINT "deployment_target_release_id_fkey" FOREIGN KEY ("target_release_id") REFERENCES "release"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "deployment_internal" ADD CONSTRAINT "deployment_internal_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "agent_internal" ADD CONSTRAINT "agent_internal_agent_id_fkey" FOREIGN KEY ("agent_id") REFERENCES "agent"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "token_use" ADD CONSTRAINT "token_use_token_id_fkey" FOREIGN KEY ("token_id") REFERENCES "token"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "token_secret" ADD CONSTRAINT "token_secret_token_id_fkey" FOREIGN KEY ("token_id") REFERENCES "token"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Moments -----------------------------------------------------------------------------------------------------------
-- Of the years 1 to 9999, never infinite: the log and its readers write years with four digits. A moment that they
-- could not read would stop the feed of every server.
ALTER TABLE "runtime" ADD CONSTRAINT "runtime_moments" CHECK ("deletion_requested_at" >= '0001-01-01 00:00:00+00' AND "deletion_requested_at" < '10000-01-01 00:00:00+00' AND "deleted_at" >= '0001-01-01 00:00:00+00' AND "deleted_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "deployment" ADD CONSTRAINT "deployment_moments" CHECK ("deletion_requested_at" >= '0001-01-01 00:00:00+00' AND "deletion_requested_at" < '10000-01-01 00:00:00+00' AND "deleted_at" >= '0001-01-01 00:00:00+00' AND "deleted_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "agent" ADD CONSTRAINT "agent_moments" CHECK ("deleted_at" >= '0001-01-01 00:00:00+00' AND "deleted_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "agent_internal" ADD CONSTRAINT "agent_internal_moments" CHECK ("last_heartbeat_at" >= '0001-01-01 00:00:00+00' AND "last_heartbeat_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "token" ADD CONSTRAINT "token_moments" CHECK ("expires_at" >= '0001-01-01 00:00:00+00' AND "expires_at" < '10000-01-01 00:00:00+00' AND "revoked_at" >= '0001-01-01 00:00:00+00' AND "revoked_at" < '10000-01-01 00:00:00+00');
ALTER TABLE "token_use" ADD CONSTRAINT "token_use_moments" CHECK ("last_used_at" >= '0001-01-01 00:00:00+00' AND "last_used_at" < '10000-01-01 00:00:00+00');

-- Guards ------------------------------------------------------------------------------------------------------------
-- One function for every versioned table. SQLSTATE SL001: an update that is not exactly one version further;
-- SL002: an identity that would change; SL003: a first version other than 1; SL004: TRUNCATE; SL005: a release.
CREATE FUNCTION "slipway_guard_update"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id <> OLD.id OR NEW.created_at <> OLD.created_at THEN
        RAISE EXCEPTION 'the id and the creation time of a % never change', TG_TABLE_NAME USING ERRCODE = 'SL002';
    END IF;
    IF NEW.version <> OLD.version + 1 THEN
        RAISE EXCEPTION 'an update of % % must move version from % to %, not to %', TG_TABLE_NAME, OLD.id, OLD.version, OLD.version + 1, NEW.version USING ERRCODE = 'SL001';
    END IF;
    -- The writers of the server give every write a token of its own. An unchanged one means somebody wrote past
    -- them: the change is theirs, not the previous writer's.
    IF NEW.change_token IS NOT DISTINCT FROM OLD.change_token THEN
        NEW.changed_by := 'sql:' || session_user;
        NEW.change_reason := NULL;
        NEW.change_message := NULL;
        NEW.trace_id := NULL;
    END IF;
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END $$;

CREATE FUNCTION "slipway_guard_namespace"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the namespace of a % never changes', TG_TABLE_NAME USING ERRCODE = 'SL002';
END $$;

CREATE FUNCTION "slipway_guard_insert"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.version <> 1 THEN
        RAISE EXCEPTION 'the first version of a % is 1, not %', TG_TABLE_NAME, NEW.version USING ERRCODE = 'SL003';
    END IF;
    IF NEW.change_token IS NULL THEN
        NEW.changed_by := 'sql:' || session_user;
        NEW.change_reason := NULL;
        NEW.change_message := NULL;
        NEW.trace_id := NULL;
    END IF;
    NEW.created_at := date_trunc('milliseconds', clock_timestamp());
    NEW.updated_at := NEW.created_at;
    RETURN NEW;
END $$;

CREATE FUNCTION "slipway_guard_truncate"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'TRUNCATE of % would lose changes without a trace; delete the rows instead', TG_TABLE_NAME USING ERRCODE = 'SL004';
END $$;

CREATE FUNCTION "slipway_guard_immutable"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a % never changes; make another one', TG_TABLE_NAME USING ERRCODE = 'SL005';
END $$;

-- The log's writers -------------------------------------------------------------------------------------------------
-- "after" is built from explicit columns: a column added to a table is in no event until it is named here. A row that
-- is marked deleted has had its DELETE change with that mark, so removing the row itself
-- later says nothing more; a row removed without the mark gets its DELETE change from the removal.
-- Moments are written in UTC, whatever the zone of the session: others have years of five digits at the end of 9999, and
-- offsets with seconds before 1900, which readers cannot parse.
CREATE FUNCTION "slipway_log_runtime"() RETURNS trigger LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('RUNTIME', NEW.id, NEW.namespace, 'INSERT', NEW.version, NULL, NULL, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'name', NEW.name, 'type', NEW.type, 'environment', NEW.environment, 'config', NEW.config, 'labels', NEW.labels, 'generation', NEW.generation, 'observedGeneration', NEW.observed_generation, 'conditions', NEW.conditions, 'deletionRequestedAt', NEW.deletion_requested_at, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), NULL::jsonb FROM c;
    ELSIF TG_OP = 'UPDATE' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('RUNTIME', NEW.id, NEW.namespace, CASE WHEN NEW.deleted_at IS NOT NULL AND NOT (OLD.deleted_at IS NOT NULL) THEN 'DELETE'::public."ChangeOp" ELSE 'UPDATE'::public."ChangeOp" END, NEW.version, NULL, NULL, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'name', NEW.name, 'type', NEW.type, 'environment', NEW.environment, 'config', NEW.config, 'labels', NEW.labels, 'generation', NEW.generation, 'observedGeneration', NEW.observed_generation, 'conditions', NEW.conditions, 'deletionRequestedAt', NEW.deletion_requested_at, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), jsonb_build_object('name', OLD.name, 'type', OLD.type, 'environment', OLD.environment, 'labels', OLD.labels, 'deletedAt', OLD.deleted_at) FROM c;
    ELSE
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('RUNTIME', OLD.id, OLD.namespace, 'DELETE', OLD.version + 1, NULL, NULL, NULL, NULL, 'sql:' || session_user, NULL)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', OLD.id, 'namespace', OLD.namespace, 'name', OLD.name, 'type', OLD.type, 'environment', OLD.environment, 'config', OLD.config, 'labels', OLD.labels, 'generation', OLD.generation, 'observedGeneration', OLD.observed_generation, 'conditions', OLD.conditions, 'deletionRequestedAt', OLD.deletion_requested_at, 'deletedAt', OLD.deleted_at, 'version', OLD.version, 'createdAt', OLD.created_at, 'updatedAt', OLD.updated_at), jsonb_build_object('name', OLD.name, 'type', OLD.type, 'environment', OLD.environment, 'labels', OLD.labels, 'deletedAt', OLD.deleted_at) FROM c;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER "guard_insert" BEFORE INSERT ON "runtime" FOR EACH ROW EXECUTE FUNCTION "slipway_guard_insert"();
CREATE TRIGGER "guard_update" BEFORE UPDATE ON "runtime" FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION "slipway_guard_update"();
CREATE TRIGGER "guard_namespace" BEFORE UPDATE ON "runtime" FOR EACH ROW WHEN (OLD.namespace <> NEW.namespace) EXECUTE FUNCTION "slipway_guard_namespace"();
CREATE TRIGGER "log_update" AFTER UPDATE ON "runtime" FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION "slipway_log_runtime"();
CREATE TRIGGER "log_insert" AFTER INSERT ON "runtime" FOR EACH ROW EXECUTE FUNCTION "slipway_log_runtime"();
CREATE TRIGGER "log_delete" AFTER DELETE ON "runtime" FOR EACH ROW WHEN (NOT (OLD.deleted_at IS NOT NULL)) EXECUTE FUNCTION "slipway_log_runtime"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "runtime" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();

CREATE FUNCTION "slipway_log_release"() RETURNS trigger LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('RELEASE', NEW.id, NEW.namespace, 'INSERT', NEW.version, NULL, NULL, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'app', NEW.app, 'label', NEW.label, 'description', NEW.description, 'resources', NEW.resources, 'source', NEW.source, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), NULL::jsonb FROM c;
    ELSIF TG_OP = 'UPDATE' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('RELEASE', NEW.id, NEW.namespace, 'UPDATE'::public."ChangeOp", NEW.version, NULL, NULL, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'app', NEW.app, 'label', NEW.label, 'description', NEW.description, 'resources', NEW.resources, 'source', NEW.source, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), NULL::jsonb FROM c;
    ELSE
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('RELEASE', OLD.id, OLD.namespace, 'DELETE', OLD.version + 1, NULL, NULL, NULL, NULL, 'sql:' || session_user, NULL)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', OLD.id, 'namespace', OLD.namespace, 'app', OLD.app, 'label', OLD.label, 'description', OLD.description, 'resources', OLD.resources, 'source', OLD.source, 'createdAt', OLD.created_at, 'updatedAt', OLD.updated_at), NULL::jsonb FROM c;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER "guard_insert" BEFORE INSERT ON "release" FOR EACH ROW EXECUTE FUNCTION "slipway_guard_insert"();
CREATE TRIGGER "guard_update" BEFORE UPDATE ON "release" FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION "slipway_guard_immutable"();
CREATE TRIGGER "log_insert" AFTER INSERT ON "release" FOR EACH ROW EXECUTE FUNCTION "slipway_log_release"();
CREATE TRIGGER "log_delete" AFTER DELETE ON "release" FOR EACH ROW EXECUTE FUNCTION "slipway_log_release"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "release" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();

CREATE FUNCTION "slipway_log_deployment"() RETURNS trigger LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('DEPLOYMENT', NEW.id, NEW.namespace, 'INSERT', NEW.version, NULL, NEW.phase::text, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'name', NEW.name, 'app', NEW.app, 'origin', NEW.origin, 'runtimeId', NEW.runtime_id, 'labels', NEW.labels, 'generation', NEW.generation, 'desiredState', NEW.desired_state, 'env', NEW.env, 'runtimeConfig', NEW.runtime_config, 'phase', NEW.phase, 'conditions', NEW.conditions, 'observedGeneration', NEW.observed_generation, 'observedRuntime', NEW.observed_runtime, 'environmentInfo', NEW.environment_info, 'error', NEW.error, 'currentReleaseId', NEW.current_release_id, 'targetReleaseId', NEW.target_release_id, 'retryRequested', NEW.retry_requested, 'protocolVersion', NEW.protocol_version, 'deletionRequestedAt', NEW.deletion_requested_at, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), NULL::jsonb FROM c;
    ELSIF TG_OP = 'UPDATE' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('DEPLOYMENT', NEW.id, NEW.namespace, CASE WHEN NEW.deleted_at IS NOT NULL AND NOT (OLD.deleted_at IS NOT NULL) THEN 'DELETE'::public."ChangeOp" ELSE 'UPDATE'::public."ChangeOp" END, NEW.version, OLD.phase::text, NEW.phase::text, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'namespace', NEW.namespace, 'name', NEW.name, 'app', NEW.app, 'origin', NEW.origin, 'runtimeId', NEW.runtime_id, 'labels', NEW.labels, 'generation', NEW.generation, 'desiredState', NEW.desired_state, 'env', NEW.env, 'runtimeConfig', NEW.runtime_config, 'phase', NEW.phase, 'conditions', NEW.conditions, 'observedGeneration', NEW.observed_generation, 'observedRuntime', NEW.observed_runtime, 'environmentInfo', NEW.environment_info, 'error', NEW.error, 'currentReleaseId', NEW.current_release_id, 'targetReleaseId', NEW.target_release_id, 'retryRequested', NEW.retry_requested, 'protocolVersion', NEW.protocol_version, 'deletionRequestedAt', NEW.deletion_requested_at, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), jsonb_build_object('name', OLD.name, 'app', OLD.app, 'origin', OLD.origin, 'runtimeId', OLD.runtime_id, 'phase', OLD.phase, 'labels', OLD.labels, 'desiredState', OLD.desired_state, 'deletedAt', OLD.deleted_at) FROM c;
    ELSE
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('DEPLOYMENT', OLD.id, OLD.namespace, 'DELETE', OLD.version + 1, OLD.phase::text, NULL, NULL, NULL, 'sql:' || session_user, NULL)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', OLD.id, 'namespace', OLD.namespace, 'name', OLD.name, 'app', OLD.app, 'origin', OLD.origin, 'runtimeId', OLD.runtime_id, 'labels', OLD.labels, 'generation', OLD.generation, 'desiredState', OLD.desired_state, 'env', OLD.env, 'runtimeConfig', OLD.runtime_config, 'phase', OLD.phase, 'conditions', OLD.conditions, 'observedGeneration', OLD.observed_generation, 'observedRuntime', OLD.observed_runtime, 'environmentInfo', OLD.environment_info, 'error', OLD.error, 'currentReleaseId', OLD.current_release_id, 'targetReleaseId', OLD.target_release_id, 'retryRequested', OLD.retry_requested, 'protocolVersion', OLD.protocol_version, 'deletionRequestedAt', OLD.deletion_requested_at, 'deletedAt', OLD.deleted_at, 'version', OLD.version, 'createdAt', OLD.created_at, 'updatedAt', OLD.updated_at), jsonb_build_object('name', OLD.name, 'app', OLD.app, 'origin', OLD.origin, 'runtimeId', OLD.runtime_id, 'phase', OLD.phase, 'labels', OLD.labels, 'desiredState', OLD.desired_state, 'deletedAt', OLD.deleted_at) FROM c;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER "guard_insert" BEFORE INSERT ON "deployment" FOR EACH ROW EXECUTE FUNCTION "slipway_guard_insert"();
CREATE TRIGGER "guard_update" BEFORE UPDATE ON "deployment" FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION "slipway_guard_update"();
CREATE TRIGGER "guard_namespace" BEFORE UPDATE ON "deployment" FOR EACH ROW WHEN (OLD.namespace <> NEW.namespace) EXECUTE FUNCTION "slipway_guard_namespace"();
CREATE TRIGGER "log_update" AFTER UPDATE ON "deployment" FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION "slipway_log_deployment"();
CREATE TRIGGER "log_insert" AFTER INSERT ON "deployment" FOR EACH ROW EXECUTE FUNCTION "slipway_log_deployment"();
CREATE TRIGGER "log_delete" AFTER DELETE ON "deployment" FOR EACH ROW WHEN (NOT (OLD.deleted_at IS NOT NULL)) EXECUTE FUNCTION "slipway_log_deployment"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "deployment" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();

CREATE FUNCTION "slipway_log_agent"() RETURNS trigger LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('AGENT', NEW.id, NULL, 'INSERT', NEW.version, NULL, NEW.health::text, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'name', NEW.name, 'topic', NEW.topic, 'environment', NEW.environment, 'serviceTypes', NEW.service_types, 'cost', NEW.cost, 'labels', NEW.labels, 'health', NEW.health, 'cordoned', NEW.cordoned, 'congestionThreshold', NEW.congestion_threshold, 'softwareVersion', NEW.software_version, 'protocolVersion', NEW.protocol_version, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at) || coalesce((SELECT jsonb_build_object('consumerLag', i.consumer_lag, 'lastHeartbeatAt', i.last_heartbeat_at) FROM public.agent_internal i WHERE i.agent_id = NEW.id), '{}'::jsonb), NULL::jsonb FROM c;
    ELSIF TG_OP = 'UPDATE' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('AGENT', NEW.id, NULL, CASE WHEN NEW.deleted_at IS NOT NULL AND NOT (OLD.deleted_at IS NOT NULL) THEN 'DELETE'::public."ChangeOp" ELSE 'UPDATE'::public."ChangeOp" END, NEW.version, OLD.health::text, NEW.health::text, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'name', NEW.name, 'topic', NEW.topic, 'environment', NEW.environment, 'serviceTypes', NEW.service_types, 'cost', NEW.cost, 'labels', NEW.labels, 'health', NEW.health, 'cordoned', NEW.cordoned, 'congestionThreshold', NEW.congestion_threshold, 'softwareVersion', NEW.software_version, 'protocolVersion', NEW.protocol_version, 'deletedAt', NEW.deleted_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at) || coalesce((SELECT jsonb_build_object('consumerLag', i.consumer_lag, 'lastHeartbeatAt', i.last_heartbeat_at) FROM public.agent_internal i WHERE i.agent_id = NEW.id), '{}'::jsonb), jsonb_build_object('name', OLD.name, 'topic', OLD.topic, 'environment', OLD.environment, 'serviceTypes', OLD.service_types, 'cost', OLD.cost, 'labels', OLD.labels, 'health', OLD.health, 'cordoned', OLD.cordoned, 'deletedAt', OLD.deleted_at) FROM c;
    ELSE
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('AGENT', OLD.id, NULL, 'DELETE', OLD.version + 1, OLD.health::text, NULL, NULL, NULL, 'sql:' || session_user, NULL)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', OLD.id, 'name', OLD.name, 'topic', OLD.topic, 'environment', OLD.environment, 'serviceTypes', OLD.service_types, 'cost', OLD.cost, 'labels', OLD.labels, 'health', OLD.health, 'cordoned', OLD.cordoned, 'congestionThreshold', OLD.congestion_threshold, 'softwareVersion', OLD.software_version, 'protocolVersion', OLD.protocol_version, 'deletedAt', OLD.deleted_at, 'version', OLD.version, 'createdAt', OLD.created_at, 'updatedAt', OLD.updated_at), jsonb_build_object('name', OLD.name, 'topic', OLD.topic, 'environment', OLD.environment, 'serviceTypes', OLD.service_types, 'cost', OLD.cost, 'labels', OLD.labels, 'health', OLD.health, 'cordoned', OLD.cordoned, 'deletedAt', OLD.deleted_at) FROM c;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER "guard_insert" BEFORE INSERT ON "agent" FOR EACH ROW EXECUTE FUNCTION "slipway_guard_insert"();
CREATE TRIGGER "guard_update" BEFORE UPDATE ON "agent" FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION "slipway_guard_update"();
CREATE TRIGGER "log_update" AFTER UPDATE ON "agent" FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION "slipway_log_agent"();
CREATE TRIGGER "log_insert" AFTER INSERT ON "agent" FOR EACH ROW EXECUTE FUNCTION "slipway_log_agent"();
CREATE TRIGGER "log_delete" AFTER DELETE ON "agent" FOR EACH ROW WHEN (NOT (OLD.deleted_at IS NOT NULL)) EXECUTE FUNCTION "slipway_log_agent"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "agent" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();

-- Whoever changes what heartbeats are judged by, psql included, changes the copies with it. Writers of health lock the
-- row of agent_internal first, then the agent's: this trigger meets a lock that they hold already.
CREATE FUNCTION "slipway_agent_judged"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE public.agent_internal SET health = NEW.health, congestion_threshold = NEW.congestion_threshold WHERE agent_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER "judged" AFTER UPDATE ON "agent" FOR EACH ROW WHEN (OLD.health IS DISTINCT FROM NEW.health OR OLD.congestion_threshold IS DISTINCT FROM NEW.congestion_threshold) EXECUTE FUNCTION "slipway_agent_judged"();

CREATE FUNCTION "slipway_log_token"() RETURNS trigger LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('TOKEN', NEW.id, NULL, 'INSERT', NEW.version, NULL, NULL, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'name', NEW.name, 'roles', NEW.roles, 'namespaces', NEW.namespaces, 'agentName', NEW.agent_name, 'createdBy', NEW.created_by, 'expiresAt', NEW.expires_at, 'revokedAt', NEW.revoked_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), NULL::jsonb FROM c;
    ELSIF TG_OP = 'UPDATE' THEN
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('TOKEN', NEW.id, NULL, 'UPDATE'::public."ChangeOp", NEW.version, NULL, NULL, NEW.change_reason, NEW.change_message, coalesce(NEW.changed_by, 'sql:' || session_user), NEW.trace_id)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', NEW.id, 'name', NEW.name, 'roles', NEW.roles, 'namespaces', NEW.namespaces, 'agentName', NEW.agent_name, 'createdBy', NEW.created_by, 'expiresAt', NEW.expires_at, 'revokedAt', NEW.revoked_at, 'version', NEW.version, 'createdAt', NEW.created_at, 'updatedAt', NEW.updated_at), jsonb_build_object('roles', OLD.roles, 'namespaces', OLD.namespaces, 'expiresAt', OLD.expires_at, 'revokedAt', OLD.revoked_at) FROM c;
    ELSE
        WITH c AS (
            INSERT INTO public.change (kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id)
            VALUES ('TOKEN', OLD.id, NULL, 'DELETE', OLD.version + 1, NULL, NULL, NULL, NULL, 'sql:' || session_user, NULL)
            RETURNING seq
        )
        INSERT INTO public.change_payload (seq, after, before)
        SELECT c.seq, jsonb_build_object('id', OLD.id, 'name', OLD.name, 'roles', OLD.roles, 'namespaces', OLD.namespaces, 'agentName', OLD.agent_name, 'createdBy', OLD.created_by, 'expiresAt', OLD.expires_at, 'revokedAt', OLD.revoked_at, 'version', OLD.version, 'createdAt', OLD.created_at, 'updatedAt', OLD.updated_at), jsonb_build_object('roles', OLD.roles, 'namespaces', OLD.namespaces, 'expiresAt', OLD.expires_at, 'revokedAt', OLD.revoked_at) FROM c;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER "guard_insert" BEFORE INSERT ON "token" FOR EACH ROW EXECUTE FUNCTION "slipway_guard_insert"();
CREATE TRIGGER "guard_update" BEFORE UPDATE ON "token" FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION "slipway_guard_update"();
CREATE TRIGGER "log_update" AFTER UPDATE ON "token" FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION "slipway_log_token"();
CREATE TRIGGER "log_insert" AFTER INSERT ON "token" FOR EACH ROW EXECUTE FUNCTION "slipway_log_token"();
CREATE TRIGGER "log_delete" AFTER DELETE ON "token" FOR EACH ROW EXECUTE FUNCTION "slipway_log_token"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "token" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();

CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "change" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "change_payload" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();
CREATE TRIGGER "guard_truncate" BEFORE TRUNCATE ON "log_state" FOR EACH STATEMENT EXECUTE FUNCTION "slipway_guard_truncate"();

-- The moment that cursors are made of: the current snapshot, with its upper bound lowered to just above the newest
-- transaction in the log. For the log's rows both say the same. But a transaction that rolled back leaves nothing on
-- disk, so after a crash its number is given out again, and a cursor that had counted it as ended would skip the new one.
-- Runs as the owner, because the read role sees no transaction numbers.
CREATE FUNCTION "slipway_log_position"() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH cur AS (SELECT pg_current_snapshot() AS s),
    top AS (
        SELECT least(
            pg_snapshot_xmax(cur.s),
            greatest(
                (SELECT (x.xid::text::numeric + 1)::text::xid8 FROM (SELECT c.xid FROM public.change c ORDER BY c.xid DESC LIMIT 1) x),
                (SELECT l.floor_xid FROM public.log_state l)
            )
        ) AS xmax FROM cur
    ),
    running AS (SELECT r.xid FROM cur, top, pg_snapshot_xip(cur.s) AS r(xid) WHERE r.xid < top.xmax)
    SELECT coalesce((SELECT min(running.xid) FROM running), top.xmax)::text || ':' || top.xmax::text || ':'
        || coalesce((SELECT string_agg(running.xid::text, ',' ORDER BY running.xid) FROM running), '')
    FROM top
$$;

-- The history that cursors belong to ---------------------------------------------------------------------------------
INSERT INTO "log_state" ("id", "epoch", "system_identifier", "timeline")
SELECT 1, replace(gen_random_uuid()::text, '-', ''), (SELECT system_identifier::text FROM pg_control_system()), ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int;

-- The read role ------------------------------------------------------------------------------------------------------
-- Reads run as a role that has no grant on anything internal, so that a mistake in the graph meets a refusal of the
-- database. Roles belong to the cluster, not to this database: another database may have made it already. A user that
-- may not create roles goes on without; the server says so once at start.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'slipway_read') THEN
        BEGIN
            CREATE ROLE slipway_read NOLOGIN NOINHERIT;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    BEGIN
        EXECUTE format('GRANT slipway_read TO %I', current_user);
    EXCEPTION WHEN unique_violation THEN NULL; -- the same grant was made by another database's migration just now
    END;
    GRANT USAGE ON SCHEMA public TO slipway_read;
    GRANT SELECT (id, namespace, name, type, environment, config, labels, generation, observed_generation, conditions, deletion_requested_at, deleted_at, version, created_at, updated_at) ON "runtime" TO slipway_read;
    GRANT SELECT (id, namespace, app, label, description, resources, source, created_at, updated_at) ON "release" TO slipway_read;
    GRANT SELECT (id, namespace, name, app, origin, runtime_id, labels, generation, desired_state, env, runtime_config, phase, conditions, observed_generation, observed_runtime, environment_info, error, current_release_id, target_release_id, retry_requested, protocol_version, deletion_requested_at, deleted_at, version, created_at, updated_at) ON "deployment" TO slipway_read;
    GRANT SELECT (id, name, topic, environment, service_types, cost, labels, health, cordoned, congestion_threshold, software_version, protocol_version, deleted_at, version, created_at, updated_at) ON "agent" TO slipway_read;
    GRANT SELECT (id, name, roles, namespaces, agent_name, created_by, expires_at, revoked_at, version, created_at, updated_at) ON "token" TO slipway_read;
    GRANT SELECT ON "agent_liveness", "token_use" TO slipway_read;
    GRANT SELECT (seq, at, kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id) ON "change" TO slipway_read;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'no right to create or grant the role slipway_read: reads will run as the owner';
END $$;
