import type { EnumRef } from '@pothos/core';

import { addEnum } from '../graph/enum.js';
import type { Graph } from '../graph/graph.js';
import type { Types } from '../graph/graph-types.js';
import { INPUT_WORDS } from '../graph/input-words.js';
import { addMutation, addPayload } from '../graph/mutation.js';
import type { FailureKind } from '../kernel/failure.js';
import type { AppliedDeployment, ApplyResult, DeploymentCommands } from './commands.js';
import type { RolloutPhase } from '../rollouts/index.js';
import { ENV_MAX, FACT_MAX, type DeleteMode } from './input.js';
import { addPlanType, PLAN_DESCRIPTION, type PlanRef } from './schema-plan.js';
import { addRolloutMutations } from './schema-rollouts.js';
import type { DeploymentPhase } from './lifecycle.js';

/** Writes of deployments: what users intend, and what controllers report. */
const FAILURES = [
  'NotFound',
  'VersionConflict',
  'InvalidInput',
  'InvalidTransition',
  'IdempotencyKeyReused',
] as const satisfies readonly FailureKind[];

interface Enums {
  readonly phase: EnumRef<Types, DeploymentPhase>;
  readonly rolloutPhase: EnumRef<Types, RolloutPhase>;
}

export function addDeploymentMutations(graph: Graph, enums: Enums, commands: DeploymentCommands): void {
  addPatchStatus(graph, enums, commands);
  const plan = addPlanType(graph, enums.phase);
  const release = addApply(graph, plan, commands);
  addIntents(graph, commands);
  addRolloutMutations(graph, { release, plan, rolloutPhase: enums.rolloutPhase }, commands);
}

function addPatchStatus({ builder, types, shared }: Graph, enums: Enums, commands: DeploymentCommands): void {
  const fact = (what: string) => ({
    description: `${what} At most ${FACT_MAX} characters. Null: not known.`,
  });
  const runtime = builder.inputType('ObservedRuntimeInput', {
    description: 'What runs, as the runtime that runs it knows it. Replaces what was reported before.',
    fields: (t) => ({
      id: t.string(fact('The runtime’s own id of itself.')),
      name: t.string(fact('The runtime’s own name of what runs.')),
      resourceId: t.string(fact('The runtime’s own id of what runs.')),
      endpoint: t.string(fact('Where what runs is reached, a URL mostly.')),
    }),
  });
  const environmentInfo = builder.inputType('EnvironmentInfoInput', {
    description: 'The environment that the deployment runs in. Replaces what was reported before.',
    fields: (t) => ({
      provider: t.string(fact('Who provides it.')),
      account: t.string(fact('The account or project there.')),
      region: t.string(fact('The region.')),
      location: t.string(fact('The place in the region: a zone, a site, a rack.')),
      hostname: t.string(fact('The name of the host.')),
      os: t.string(fact('The operating system.')),
      arch: t.string(fact('The architecture of the processor.')),
    }),
  });
  const error = builder.inputType('DeploymentErrorInput', {
    description: 'What went wrong.',
    fields: (t) => ({
      code: t.string({ required: true, description: 'For machines: 1 to 128 letters, digits or `_`.' }),
      message: t.string({ required: true, description: 'For people; beyond 4 KiB it is cut.' }),
      retryable: t.boolean({ description: 'Whether the same again may go well. Null: true.' }),
    }),
  });
  const input = builder.inputType('PatchDeploymentStatusInput', {
    description:
      'What a controller observed. What is left out stays as it is; what is null is cleared where null is allowed.',
    fields: (t) => ({
      id: t.id({ required: true, description: 'Which deployment; its runtime must be driven by clients.' }),
      expectedVersion: t.int({
        required: true,
        description: 'The version that was read: of racing patches with the same one, one wins.',
      }),
      observedGeneration: t.int({
        description: 'The generation of the spec that was observed. Null: not told. Never goes back.',
      }),
      phase: t.field({
        type: enums.phase,
        description: 'Where it is now: a move by fact of the lifecycle. Null: no move.',
      }),
      conditions: t.field({
        type: [shared.conditionInput],
        description: 'Conditions that were observed; others stay. Null: none.',
      }),
      runtime: t.field({
        type: runtime,
        description: 'The workload as its runtime knows it. Null clears it; left out, it stays.',
      }),
      environmentInfo: t.field({
        type: environmentInfo,
        description: 'The environment. Null clears it; left out, it stays.',
      }),
      error: t.field({ type: error, description: 'What went wrong. Null clears it; left out, it stays.' }),
      reason: t.string({ description: INPUT_WORDS.reason }),
      message: t.string({ description: INPUT_WORDS.message }),
      idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
    }),
  });
  addMutation(builder, 'patchDeploymentStatus', {
    description:
      'Reports what was observed of a deployment on an external runtime. What changes nothing writes nothing.',
    object: 'DEPLOYMENT',
    input,
    payload: addPayload(
      builder,
      'patchDeploymentStatus',
      'deployment',
      types.Deployment,
      'The deployment as it is now.',
    ),
    failures: [...FAILURES, 'IncompatibleProtocol'],
    run: (caller, value) => commands.patchDeploymentStatus(caller, value),
  });
}

function addApply({ builder, types }: Graph, plan: PlanRef, commands: DeploymentCommands) {
  const variable = builder.inputType('EnvironmentVariableInput', {
    description: 'One environment variable.',
    fields: (t) => ({
      name: t.string({ required: true, description: 'At most 255 letters, digits or `_`, no digit first.' }),
      value: t.string({ description: 'The value, at most 32 KiB. Null only together with `secretValue`.' }),
      secretValue: t.string({
        description:
          'A value to be kept back. Runtimes of type `external` refuse such values. Null: `value` is given.',
      }),
    }),
  });
  const runtime = builder.inputType('RuntimeReference', {
    description: 'A runtime, by id or by name: exactly one of them.',
    fields: (t) => ({
      id: t.id({ description: 'Its id. Null: by name.' }),
      name: t.string({ description: 'Its name in the namespace of the deployment. Null: by id.' }),
    }),
  });
  const release = builder.inputType('ReleaseReference', {
    description: 'A release, by id or by label.',
    fields: (t) => ({
      id: t.id({ description: 'Its id. Null: by label.' }),
      app: t.string({ description: 'Its app, together with `label`. Null: the app of the deployment.' }),
      label: t.string({ description: 'Its label, in the namespace of the deployment. Null: by id.' }),
    }),
  });
  const input = builder.inputType('ApplyDeploymentInput', {
    description:
      'What is wanted of the deployment with this name. On an update, what is left out or null stays as it is.',
    fields: (t) => ({
      namespace: t.string({ description: 'Its namespace. Null: `default`.' }),
      name: t.string({
        required: true,
        description: 'Its name: created if there is none of that name, else updated.',
      }),
      app: t.string({ description: 'Its app; cannot change. Null: the app of the release.' }),
      runtime: t.field({
        type: runtime,
        description: 'Where it runs; needed to create it, and cannot change. Null: as it is.',
      }),
      release: t.field({
        type: release,
        description: 'What it is to run; needed to create it. Null: as it is.',
      }),
      labels: t.field({ type: 'Labels', description: 'All of its labels. Null: as they are, or none.' }),
      env: t.field({
        type: [variable],
        description: `All of its environment variables, at most ${ENV_MAX}. Null: as they are, or none.`,
      }),
      runtimeConfig: t.field({
        type: 'JSONObject',
        description:
          'What its runtime is told beside that, at most 64 KiB as JSON. Null: as it is, or empty.',
      }),
      expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
      reason: t.string({ description: INPUT_WORDS.reason }),
      message: t.string({ description: INPUT_WORDS.message }),
      idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      dryRun: t.boolean({ description: INPUT_WORDS.dryRun }),
    }),
  });
  const result = addEnum<ApplyResult>(builder, 'ApplyResult', 'What applying did.', {
    CREATED: 'The deployment was created.',
    UPDATED: 'The deployment was changed.',
    UNCHANGED: 'The deployment already was what was asked for; nothing was written.',
  });
  const payload = builder.objectRef<AppliedDeployment>('ApplyDeploymentPayload').implement({
    description: '`applyDeployment` was carried out.',
    fields: (t) => ({
      deployment: t.field({
        type: types.Deployment,
        description: 'The deployment as it is now.',
        resolve: (done) => done.deployment,
      }),
      result: t.field({ type: result, description: 'What was done.', resolve: (done) => done.result }),
      plan: t.field({
        type: plan,
        nullable: true,
        description: PLAN_DESCRIPTION,
        resolve: (done) => done.plan,
      }),
    }),
  });
  addMutation(builder, 'applyDeployment', {
    description:
      'Creates a deployment, or changes what is wanted of it, by name. An update that names a part of the spec (`release`, `env` or `runtimeConfig`) wants it deployed, which deploys again what was undeployed. ' +
      'One that names none edits labels alone, in every phase: nothing moves and no generation begins. Once deletion was requested, both are refused (Terminating).',
    object: 'DEPLOYMENT',
    input,
    payload,
    failures: [...FAILURES, 'Terminating', 'LockHeld'],
    run: (caller, value) => commands.applyDeployment(caller, value),
  });
  return release;
}

function addIntents({ builder, types }: Graph, commands: DeploymentCommands): void {
  const intentInput = (name: string, description: string) =>
    builder.inputType(name, {
      description,
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which deployment.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    });
  addMutation(builder, 'undeployDeployment', {
    description: 'Wants nothing of the deployment to run any more; it stays, to be applied again.',
    object: 'DEPLOYMENT',
    input: intentInput('UndeployDeploymentInput', 'Which deployment to take down.'),
    payload: addPayload(
      builder,
      'undeployDeployment',
      'deployment',
      types.Deployment,
      'The deployment as it is now.',
    ),
    failures: [...FAILURES, 'Terminating', 'LockHeld'],
    run: (caller, value) => commands.undeployDeployment(caller, value),
  });
  addMutation(builder, 'retryDeployment', {
    description: 'Asks for what failed to be tried again.',
    object: 'DEPLOYMENT',
    input: intentInput('RetryDeploymentInput', 'Which deployment to try again.'),
    payload: addPayload(
      builder,
      'retryDeployment',
      'deployment',
      types.Deployment,
      'The deployment as it is now.',
    ),
    failures: [...FAILURES, 'LockHeld'],
    run: (caller, value) => commands.retryDeployment(caller, value),
  });
  const mode = addEnum<DeleteMode>(builder, 'DeleteMode', 'What deleting a deployment does with what runs.', {
    DELETE: 'It is removed first, then the deployment is gone.',
    DETACH: 'It goes on running, and nobody here manages it any more. Needs OPERATOR.',
    FORGET: 'The deployment is gone at once, for what can never be removed. Needs ADMIN.',
  });
  addMutation(builder, 'deleteDeployment', {
    description: 'Asks for a deployment to be deleted. Asking again succeeds.',
    object: 'DEPLOYMENT',
    input: builder.inputType('DeleteDeploymentInput', {
      description: 'Which deployment to delete, and how.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which deployment.' }),
        mode: t.field({ type: mode, description: 'What to do with what runs. Null: DELETE.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: addPayload(
      builder,
      'deleteDeployment',
      'deployment',
      types.Deployment,
      'The deployment as it is now.',
    ),
    failures: FAILURES,
    run: (caller, value) => commands.deleteDeployment(caller, value),
  });
}
