-- Lists, filters, sweeps and purges that stay level however many objects there are.
--
-- What lists sort and filter by is compared by code points (COLLATE "C"), whatever the database's own language: an index
-- then answers "begins with", and the order is the same everywhere.
-- The guards of the namespace read that column: they are made anew.
DROP TRIGGER "guard_namespace" ON "runtime";
DROP TRIGGER "guard_namespace" ON "deployment";
ALTER TABLE "runtime"
    ALTER COLUMN "namespace" TYPE TEXT COLLATE "C",
    ALTER COLUMN "name" TYPE TEXT COLLATE "C",
    ALTER COLUMN "type" TYPE TEXT COLLATE "C",
    ALTER COLUMN "environment" TYPE TEXT COLLATE "C";
ALTER TABLE "release"
    ALTER COLUMN "namespace" TYPE TEXT COLLATE "C",
    ALTER COLUMN "app" TYPE TEXT COLLATE "C",
    ALTER COLUMN "label" TYPE TEXT COLLATE "C";
ALTER TABLE "deployment"
    ALTER COLUMN "namespace" TYPE TEXT COLLATE "C",
    ALTER COLUMN "name" TYPE TEXT COLLATE "C",
    ALTER COLUMN "app" TYPE TEXT COLLATE "C";
ALTER TABLE "agent"
    ALTER COLUMN "name" TYPE TEXT COLLATE "C",
    ALTER COLUMN "topic" TYPE TEXT COLLATE "C",
    ALTER COLUMN "environment" TYPE TEXT COLLATE "C";
CREATE TRIGGER "guard_namespace" BEFORE UPDATE ON "runtime" FOR EACH ROW WHEN (OLD.namespace <> NEW.namespace) EXECUTE FUNCTION "slipway_guard_namespace"();
CREATE TRIGGER "guard_namespace" BEFORE UPDATE ON "deployment" FOR EACH ROW WHEN (OLD.namespace <> NEW.namespace) EXECUTE FUNCTION "slipway_guard_namespace"();

-- Neither RUNNING nor DELETED, kept by a trigger: what is looked for among the many that run. The index of lists by phase
-- is on this column, because an index that reads the phase itself would be rewritten by every status patch.
ALTER TABLE "deployment" ADD COLUMN "exceptional" BOOLEAN NOT NULL DEFAULT true;
-- No object changes by this, so no version moves and nothing is logged.
ALTER TABLE "deployment" DISABLE TRIGGER USER;
UPDATE "deployment" SET "exceptional" = false WHERE "phase" IN ('RUNNING', 'DELETED');
ALTER TABLE "deployment" ENABLE TRIGGER USER;
-- The condition is all that a patch pays for which does not cross the line.
CREATE FUNCTION "slipway_deployment_exceptional"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.exceptional := NEW.phase NOT IN ('RUNNING', 'DELETED');
    RETURN NEW;
END $$;
CREATE TRIGGER "exceptional" BEFORE INSERT OR UPDATE ON "deployment" FOR EACH ROW WHEN (NEW.exceptional IS DISTINCT FROM (NEW.phase NOT IN ('RUNNING', 'DELETED'))) EXECUTE FUNCTION "slipway_deployment_exceptional"();

-- Indexes -----------------------------------------------------------------------------------------------------------
-- Each one costs its share of every insert, and of every update that finds its page full; none of them holds a column
-- that a status patch changes as a rule, so that patches touch no index at all.
--
-- By name over all namespaces: sorted, looked up, or by how it begins. Agents have their unique name.
CREATE INDEX "runtime_name_id_idx" ON "runtime"("name", "id");
CREATE INDEX "deployment_name_id_idx" ON "deployment"("name", "id");
CREATE INDEX "token_name_id_idx" ON "token"("name", "id");
-- The commonest filters of deployments, each in the order of lists. None on origin or desired state: where most rows
-- match, the walk in order finds a page at once.
CREATE INDEX "deployment_app_created_at_id_idx" ON "deployment"("app", "created_at", "id");
CREATE INDEX "deployment_exceptional_idx" ON "deployment"("created_at", "id") WHERE "exceptional";
CREATE INDEX "deployment_labels_idx" ON "deployment" USING gin ("labels" jsonb_path_ops);
CREATE INDEX "release_app_created_at_id_idx" ON "release"("app", "created_at", "id");
-- Deployments of a runtime, and whether there are any. A target is there only while something moves: the rest costs nothing.
DROP INDEX "deployment_runtime_id_idx";
CREATE INDEX "deployment_runtime_id_created_at_id_idx" ON "deployment"("runtime_id", "created_at", "id");
DROP INDEX "deployment_target_release_id_idx";
CREATE INDEX "deployment_target_release_id_idx" ON "deployment"("target_release_id") WHERE "target_release_id" IS NOT NULL;
-- Sweeps and purges look for few among many: partial, so that all others cost them nothing.
CREATE INDEX "runtime_terminating_idx" ON "runtime"("id") WHERE "deletion_requested_at" IS NOT NULL AND "deleted_at" IS NULL;
CREATE INDEX "runtime_deleted_at_idx" ON "runtime"("deleted_at") WHERE "deleted_at" IS NOT NULL;
CREATE INDEX "deployment_deleted_at_idx" ON "deployment"("deleted_at") WHERE "deleted_at" IS NOT NULL;

-- The read role ------------------------------------------------------------------------------------------------------
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'slipway_read') THEN
        GRANT SELECT ("exceptional") ON "deployment" TO slipway_read;
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'no right to grant to the role slipway_read: reads will run as the owner';
END $$;
