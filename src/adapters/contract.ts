import type { z } from 'zod';

import type { EnvironmentInfo, ObservedRuntime } from '../deployments/index.js';
import type { ReportedCondition } from '../kernel/conditions.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { ReleaseResource, ResourceLifecycle } from '../releases/index.js';

/**
 * What makes a type of runtime real. The engine calls adapters between its steps, never inside a transaction, and at most
 * one call at a time for a deployment within one lease.
 *
 * Every call is idempotent, returns fast and converges over further calls: an adapter never waits for a program to become
 * healthy or to end, it answers `inProgress`. A throw means "try again later" (network, disk, an aborted signal) and may
 * come at any moment; what the call had done by then is found again by the next one. Answers that trying again does not
 * change are `blocked` (somebody else must act, then it goes on) or `rejected` (this spec, here, never works).
 *
 * No secret stands in an answer, except in `sensitiveOutputs`.
 */
export interface Adapter {
  /** The runtime type it serves; one adapter a type. */
  readonly type: string;
  /** Of a runtime's `config`. Strict; fills in defaults, and what it gives is what is stored. */
  readonly configSchema: z.ZodType<JsonObject>;
  /** The host whose server alone may carry out the work; null when any may. Absent: any. */
  host?(config: JsonObject): string | null;
  /** Whether it can run such a resource, its spec included. Pure; the message names the field and the bound. */
  supports(resource: ReleaseResource): Verdict;
  /**
   * Called before the first `apply`, and its `internal` is stored before that: names the identity under which everything
   * will be made, so that it can be removed even if the server dies before `apply` answers.
   */
  prepare?(target: AdapterTarget, signal: AbortSignal): Promise<AdapterAnswer>;
  /** Asked before `apply`: a refusal waits, without counting as a failure. */
  gate?(target: AdapterTarget, signal: AbortSignal): Promise<Verdict>;
  /**
   * Makes the resources of that scope what the target says; those of the scope that are no longer in the release go. FROZEN
   * comes first, in an update too: LIVE takes the FROZEN ones as given. `done` when all are ready.
   */
  apply(target: AdapterTarget, scope: ResourceLifecycle, signal: AbortSignal): Promise<AdapterAnswer>;
  /**
   * What is there now. Changes nothing that runs. `done`, or `inProgress` when it should be looked at again sooner than
   * usual. The condition `Healthy` says how it goes; when FALSE, its reason and message are the error to show.
   */
  observe(target: AdapterTarget, signal: AbortSignal): Promise<AdapterAnswer>;
  /**
   * Takes away everything of that scope: what was recorded, wherever the configuration points by now. The release may be
   * null. What is not there any more is `done`.
   */
  remove(target: AdapterTarget, scope: ResourceLifecycle, signal: AbortSignal): Promise<AdapterAnswer>;
  /** What is there and belongs to no deployment in `known`. A throw says nothing about what is there. */
  discover?(
    runtime: RuntimeSnapshot,
    known: KnownIds,
    signal: AbortSignal,
  ): Promise<readonly DiscoveredWorkload[]>;
  /** The last lines, oldest first; with `follow` further ones until `signal` aborts or the deployment is removed. Then it ends, without a throw. */
  logs?(target: LogTarget, request: LogRequest): AsyncIterable<LogLine>;
  /** What else, besides spec, release and runtime, makes an `apply` necessary when it changes. */
  fingerprint?(target: AdapterTarget): Json;
}

export type Verdict =
  { readonly ok: true } | { readonly ok: false; readonly reason: string; readonly message: string };

export interface RuntimeSnapshot {
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  readonly environment: string | null;
  /** As the adapter's `configSchema` gave it, once; a later version of the schema may read it again. */
  readonly config: JsonObject;
  readonly generation: number;
}

export interface ReleaseSnapshot {
  readonly id: string;
  readonly app: string;
  readonly label: string;
  readonly resources: readonly ReleaseResource[];
}

/** The value is in clear, here only. */
export interface EnvVariable {
  readonly name: string;
  readonly value: string;
  /** Its value is blanked out of messages and log lines. */
  readonly secret: boolean;
}

/** What adapters remember of a deployment, as internal metadata. Null: nothing was. */
export interface AdapterMemory {
  readonly runtimeId: string | null;
  readonly runtimeName: string | null;
  readonly runtimeResourceId: string | null;
  readonly runtimeNamespace: string | null;
  readonly actorSubject: string | null;
  readonly appProtocol: string | null;
  readonly lastSyncedEnvHash: string | null;
  readonly lastSyncedSecretNames: readonly string[];
  readonly accessGranted: boolean;
}

export interface RecordedInstance {
  readonly name: string;
  readonly assignment: number;
  /** What the adapter's last answer about it said. */
  readonly internal: JsonObject;
}

/** One deployment as it is at one moment. */
export interface AdapterTarget {
  readonly deploymentId: string;
  readonly namespace: string;
  readonly name: string;
  readonly app: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly generation: number;
  /**
   * Names the try: the rollout's id, for example. Within one, what failed is told and left alone; the next one (a retry, a
   * forced reapply, a new spec) begins again with what is not running or not healthy.
   */
  readonly attempt: string;
  readonly runtime: RuntimeSnapshot;
  /** The release to run; null when it is gone, or none is wanted. */
  readonly release: ReleaseSnapshot | null;
  readonly env: readonly EnvVariable[];
  readonly runtimeConfig: JsonObject;
  readonly recorded: AdapterMemory;
  readonly instances: readonly RecordedInstance[];
  /** The lease's number, higher with every claim. An adapter whose world keeps numbers refuses a lower one (`Superseded`). */
  readonly fence: bigint;
}

export type AdapterOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'inProgress'; readonly delaySeconds: number }
  | { readonly kind: 'blocked'; readonly reason: string; readonly message: string }
  | { readonly kind: 'rejected'; readonly reason: string; readonly message: string };

/** PENDING waits for what it requires. FAILED ended and does not come back by itself; UNHEALTHY may. */
export type ReportedInstanceStatus =
  'PENDING' | 'PROVISIONING' | 'READY' | 'UNHEALTHY' | 'FAILED' | 'DELETING' | 'DELETED';
/** DEGRADED: the last checks failed, too few of them to say UNHEALTHY. */
export type ReportedHealth = 'UNKNOWN' | 'HEALTHY' | 'DEGRADED' | 'UNHEALTHY';
export type Outputs = Readonly<Record<string, string>>;

export interface InstanceError {
  readonly code: string;
  readonly message: string;
  readonly detail: string | null;
}

export interface InstanceReport {
  /** Of the resource. */
  readonly name: string;
  readonly serviceType: string;
  readonly lifecycle: ResourceLifecycle;
  readonly status: ReportedInstanceStatus;
  readonly health: ReportedHealth;
  readonly statusMessage: string | null;
  readonly outputs: Outputs;
  readonly sensitiveOutputs: Outputs;
  readonly error: InstanceError | null;
  /** Replaces what was recorded of this instance. */
  readonly internal: JsonObject;
}

export interface InventoryResource {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly attributes: JsonObject;
}

/** A complete batch says that nothing else is there within its scope; a partial one says nothing about what it leaves out. */
export interface Inventory {
  readonly scope: string;
  readonly complete: boolean;
  readonly resources: readonly InventoryResource[];
}

export interface AdapterAnswer {
  readonly outcome: AdapterOutcome;
  /** They merge by type. */
  readonly conditions: readonly ReportedCondition[];
  /** Null: unchanged. All fields null: nothing runs. */
  readonly runtime: ObservedRuntime | null;
  readonly environmentInfo: EnvironmentInfo | null;
  /** Merged into what was recorded: fields that are not named stay. */
  readonly internal: Partial<AdapterMemory>;
  /** Instances that are not named stay as they are. */
  readonly instances: readonly InstanceReport[];
  readonly inventory?: Inventory;
}

/** Ids of everything that is not deleted, objects that are being deleted included. */
export interface KnownIds {
  readonly deployments: ReadonlySet<string>;
  readonly runtimes: ReadonlySet<string>;
}

export interface DiscoveredWorkload {
  /** The same at every poll, and unique within the runtime. */
  readonly resourceId: string;
  /** As it calls itself; null when it does not say. */
  readonly name: string | null;
  readonly namespace: string | null;
  readonly app: string | null;
  readonly runtime: ObservedRuntime;
  readonly environmentInfo: EnvironmentInfo;
  readonly internal: Partial<AdapterMemory>;
  readonly instances: readonly InstanceReport[];
}

/** Logs need no release, no lease and no configuration. */
export type LogTarget = Pick<AdapterTarget, 'deploymentId' | 'recorded' | 'env'>;

export const LOG_TAIL_MAX = 10_000;
export const LOG_LINE_MAX_BYTES = 16_384;

export interface LogRequest {
  /** One resource's; null: those of all, one after the other in the tail, as they come in what follows. */
  readonly resource: string | null;
  /** Lines of each resource, 0 to LOG_TAIL_MAX; more is taken for LOG_TAIL_MAX. */
  readonly tail: number;
  readonly follow: boolean;
  readonly signal: AbortSignal;
}

export interface LogLine {
  readonly resource: string;
  /** At most LOG_LINE_MAX_BYTES of UTF-8, without its end; a longer line comes in pieces. */
  readonly text: string;
  /** When it was written, if the world tells; ISO 8601, UTC. */
  readonly at: string | null;
  readonly stream: 'stdout' | 'stderr' | null;
}
