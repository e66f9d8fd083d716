import type { EnumRef, InputRef } from '@pothos/core';

import type { Graph } from '../graph/graph.js';
import type { Types } from '../graph/graph-types.js';
import { INPUT_WORDS } from '../graph/input-words.js';
import { addMutation, addPayload } from '../graph/mutation.js';
import type { FailureKind } from '../kernel/failure.js';
import type { RolloutPhase } from '../rollouts/index.js';
import type { RolloutCommands } from './commands-rollouts.js';
import type { Attempted, ReleaseRollouts } from './commands-releases.js';
import { FACT_MAX, FORCE_TOKEN_MAX } from './input.js';
import { PLAN_DESCRIPTION, type PlanRef } from './schema-plan.js';

/** Attempts to change what a deployment runs: those that begin and are active at once, and those whose client builds first. */
const FAILURES = [
  'NotFound',
  'VersionConflict',
  'InvalidInput',
  'InvalidTransition',
  'Terminating',
  'LockHeld',
  'IdempotencyKeyReused',
] as const satisfies readonly FailureKind[];

interface Inputs {
  readonly release: InputRef<object>;
  readonly plan: PlanRef;
  readonly rolloutPhase: EnumRef<Types, RolloutPhase>;
}

export function addRolloutMutations(
  graph: Graph,
  inputs: Inputs,
  commands: ReleaseRollouts & RolloutCommands,
): void {
  const source = sourceInput(graph);
  addAttempts(graph, { ...inputs, source }, commands);
  addBegin(graph, source, commands);
  addDriving(graph, inputs, commands);
}

function sourceInput({ builder }: Graph) {
  const fact = (what: string) => ({ description: `${what} At most ${FACT_MAX} characters. Null: not said.` });
  return builder.inputType('RolloutSourceInput', {
    description: 'Where what is rolled out was built from.',
    fields: (t) => ({
      sha: t.string(fact('The commit.')),
      branch: t.string(fact('The branch.')),
      repository: t.string(fact('The repository.')),
      dirty: t.boolean({ description: 'Whether there were changes beside the commit. Null: not said.' }),
      message: t.string({
        description: 'The message of the commit, at most 4096 characters. Null: not said.',
      }),
      author: t.string(fact('The author of the commit.')),
    }),
  });
}

function addAttempts(
  { builder, types }: Graph,
  { release, plan, source }: Inputs & { readonly source: ReturnType<typeof sourceInput> },
  commands: ReleaseRollouts,
): void {
  const payload = (mutation: string, planned = true) =>
    builder.objectRef<Attempted>(`${mutation}Payload`).implement({
      description: `\`${mutation.slice(0, 1).toLowerCase()}${mutation.slice(1)}\` was carried out.`,
      fields: (t) => ({
        deployment: t.field({
          type: types.Deployment,
          description: 'The deployment as it is now.',
          resolve: (done) => done.deployment,
        }),
        rollout: t.field({
          type: types.Rollout,
          nullable: true,
          description: 'The rollout that began; null if everything was as wanted already.',
          resolve: (done) => done.rollout,
        }),
        ...(planned
          ? {
              plan: t.field({
                type: plan,
                nullable: true,
                description: PLAN_DESCRIPTION,
                resolve: (done) => done.plan,
              }),
            }
          : {}),
      }),
    });
  addMutation(builder, 'deployRelease', {
    description: 'Moves a deployment to a release. What runs that release already is left alone.',
    object: 'DEPLOYMENT',
    input: builder.inputType('DeployReleaseInput', {
      description: 'Which release to deploy, and where.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which deployment.' }),
        release: t.field({ type: release, required: true, description: 'What it is to run.' }),
        source: t.field({ type: source, description: 'Where it was built from. Null: not said.' }),
        logUrl: t.string({
          description: 'Where its build can be followed, at most 2048 characters. Null: nowhere.',
        }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
        dryRun: t.boolean({ description: INPUT_WORDS.dryRun }),
      }),
    }),
    payload: payload('DeployRelease'),
    failures: FAILURES,
    run: (caller, value) => commands.deployRelease(caller, value),
  });
  addMutation(builder, 'rollbackDeployment', {
    description:
      'Moves a deployment back: to the release of one of its rollouts, to a named release or, without either, to what last ran before the one that is wanted now.',
    object: 'DEPLOYMENT',
    input: builder.inputType('RollbackDeploymentInput', {
      description: 'What to roll back, and to what.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which deployment.' }),
        rolloutId: t.id({
          description: 'To the release of this rollout. Not together with `release`. Null: see the mutation.',
        }),
        release: t.field({ type: release, description: 'To this release. Null: see the mutation.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
        dryRun: t.boolean({ description: INPUT_WORDS.dryRun }),
      }),
    }),
    payload: payload('RollbackDeployment'),
    failures: FAILURES,
    run: (caller, value) => commands.rollbackDeployment(caller, value),
  });
  addMutation(builder, 'reapplyDeployment', {
    description: 'Brings about again what is wanted already, though nothing of it has changed.',
    object: 'DEPLOYMENT',
    input: builder.inputType('ReapplyDeploymentInput', {
      description: 'What to apply again.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which deployment.' }),
        forceToken: t.string({
          description: `Names the request, 1 to ${FORCE_TOKEN_MAX} characters: the one that was honoured last is not honoured again. Null: a new one.`,
        }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: payload('ReapplyDeployment', false),
    failures: FAILURES,
    run: (caller, value) => commands.reapplyDeployment(caller, value),
  });
}

function addBegin(
  { builder, types }: Graph,
  source: ReturnType<typeof sourceInput>,
  commands: RolloutCommands,
): void {
  addMutation(builder, 'beginRollout', {
    description:
      'Takes the deploy lock for an attempt whose release is still to be built. Nothing of the deployment changes until `activateRollout`. Without a sign of life (`setRolloutPhase`) the lock runs out after 30 minutes.',
    object: 'DEPLOYMENT',
    input: builder.inputType('BeginRolloutInput', {
      description: 'What to begin.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which deployment.' }),
        source: t.field({ type: source, description: 'Where it is built from. Null: not said.' }),
        logUrl: t.string({
          description: 'Where the build can be followed, at most 2048 characters. Null: nowhere.',
        }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: addPayload(builder, 'beginRollout', 'rollout', types.Rollout, 'The rollout that began.'),
    failures: FAILURES,
    run: (caller, value) => commands.beginRollout(caller, value),
  });
}

function addDriving({ builder, types }: Graph, inputs: Inputs, commands: RolloutCommands): void {
  const payload = (mutation: string) =>
    addPayload(builder, mutation, 'rollout', types.Rollout, 'The rollout as it is now.');
  addMutation(builder, 'setRolloutPhase', {
    description: 'Says how far a rollout is that is not active yet, and keeps its lock for 30 more minutes.',
    object: 'ROLLOUT',
    input: builder.inputType('SetRolloutPhaseInput', {
      description: 'How far it is.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which rollout.' }),
        phase: t.field({
          type: inputs.rolloutPhase,
          required: true,
          description: 'PREPARING, BUILDING or PUSHING.',
        }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: payload('setRolloutPhase'),
    failures: FAILURES,
    run: (caller, value) => commands.setRolloutPhase(caller, value),
  });
  addMutation(builder, 'activateRollout', {
    description:
      'Moves the deployment to what was built. Only under a lock that has not run out: a build that took longer changes nothing. Once active, what becomes of the deployment decides the outcome.',
    object: 'ROLLOUT',
    input: builder.inputType('ActivateRolloutInput', {
      description: 'What was built.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which rollout.' }),
        release: t.field({
          type: inputs.release,
          required: true,
          description: 'The release, of the same app.',
        }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: payload('activateRollout'),
    failures: FAILURES,
    run: (caller, value) => commands.activateRollout(caller, value),
  });
  addMutation(builder, 'failRollout', {
    description: 'Ends a rollout that is not active: its build failed. What was cancelled stays cancelled.',
    object: 'ROLLOUT',
    input: builder.inputType('FailRolloutInput', {
      description: 'What went wrong.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which rollout.' }),
        code: t.string({ description: 'For machines: 1 to 128 letters, digits or `_`. Null: `Failed`.' }),
        message: t.string({ required: true, description: 'For people; beyond 4 KiB it is cut.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: payload('failRollout'),
    failures: FAILURES,
    run: (caller, value) => commands.failRollout(caller, value),
  });
  addMutation(builder, 'cancelRollout', {
    description:
      'Calls a rollout off. Not active yet, it ends at once; active, the deployment goes back to what serves, or to nothing if nothing did, and then it ends CANCELLED.',
    object: 'ROLLOUT',
    input: builder.inputType('CancelRolloutInput', {
      description: 'What to call off.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which rollout.' }),
        message: t.string({ description: 'Why, for people; beyond 4 KiB it is cut. Null: nothing is said.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: payload('cancelRollout'),
    failures: FAILURES,
    run: (caller, value) => commands.cancelRollout(caller, value),
  });
}
