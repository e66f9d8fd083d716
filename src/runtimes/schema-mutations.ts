import type { Graph } from '../graph/graph.js';
import { INPUT_WORDS } from '../graph/input-words.js';
import { addMutation, addPayload } from '../graph/mutation.js';
import type { RuntimeCommands } from './commands.js';
import { RUNTIME_TYPES } from './model.js';

/** Writes of runtimes: what operators want, and what controllers report. */
export function addRuntimeMutations(graph: Graph, commands: RuntimeCommands): void {
  addCreate(graph, commands);
  addUpdate(graph, commands);
  addDelete(graph, commands);
  addPatchStatus(graph, commands);
}

function addCreate({ builder, types }: Graph, commands: RuntimeCommands): void {
  addMutation(builder, 'createRuntime', {
    description: 'Registers a place where deployments run.',
    object: 'RUNTIME',
    input: builder.inputType('CreateRuntimeInput', {
      description: 'What the runtime is.',
      fields: (t) => ({
        namespace: t.string({ description: 'Its namespace. Null: `default`. Never changes.' }),
        name: t.string({
          required: true,
          description: 'Its name: 1 to 63 lower-case letters, digits or `-`. Never changes.',
        }),
        type: t.string({
          required: true,
          description: `What drives it; known types: ${RUNTIME_TYPES.join(', ')}. Never changes.`,
        }),
        environment: t.string({ description: 'The environment that it belongs to. Null: none.' }),
        config: t.field({
          type: 'JSONObject',
          description: 'Its configuration, at most 64 KiB as JSON. Holds no secrets. Null: empty.',
        }),
        labels: t.field({ type: 'Labels', description: 'Its labels. Null: none.' }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: addPayload(builder, 'createRuntime', 'runtime', types.Runtime, 'The new runtime.'),
    failures: ['NotFound', 'InvalidInput', 'AlreadyExists', 'IdempotencyKeyReused'],
    run: (caller, value) =>
      commands.createRuntime(caller, value as Parameters<RuntimeCommands['createRuntime']>[1]), // an unknown `type` is the command's to refuse
  });
}

function addUpdate({ builder, types }: Graph, commands: RuntimeCommands): void {
  addMutation(builder, 'updateRuntime', {
    description: 'Changes what is wanted of a runtime.',
    object: 'RUNTIME',
    input: builder.inputType('UpdateRuntimeInput', {
      description: 'What is left out stays as it is.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which runtime.' }),
        environment: t.string({
          description: 'The environment that it belongs to. Null takes it away; left out, it stays.',
        }),
        config: t.field({ type: 'JSONObject', description: 'All of its configuration. Null: as it is.' }),
        labels: t.field({ type: 'Labels', description: 'All of its labels. Null: as they are.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: addPayload(builder, 'updateRuntime', 'runtime', types.Runtime, 'The runtime as it is now.'),
    failures: ['NotFound', 'VersionConflict', 'InvalidInput', 'Terminating', 'IdempotencyKeyReused'],
    run: (caller, value) => commands.updateRuntime(caller, value),
  });
}

function addDelete({ builder, types }: Graph, commands: RuntimeCommands): void {
  addMutation(builder, 'deleteRuntime', {
    description:
      'Asks for a runtime to be deleted: it takes no new deployments, and goes with its last one. Asking again succeeds.',
    object: 'RUNTIME',
    input: builder.inputType('DeleteRuntimeInput', {
      description: 'Which runtime to delete.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which runtime.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
      }),
    }),
    payload: addPayload(builder, 'deleteRuntime', 'runtime', types.Runtime, 'The runtime as it is now.'),
    failures: ['NotFound', 'VersionConflict', 'InvalidInput'],
    run: (caller, value) => commands.deleteRuntime(caller, value),
  });
}

function addPatchStatus({ builder, types, shared }: Graph, commands: RuntimeCommands): void {
  addMutation(builder, 'patchRuntimeStatus', {
    description: 'Reports what was observed of an external runtime. What changes nothing writes nothing.',
    object: 'RUNTIME',
    input: builder.inputType('PatchRuntimeStatusInput', {
      description: 'What a controller observed. What is left out stays as it is.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which runtime.' }),
        expectedVersion: t.int({
          required: true,
          description: 'The version that was read: of racing patches with the same one, one wins.',
        }),
        observedGeneration: t.int({
          description: 'The generation that was observed. Null: not told. Never goes back.',
        }),
        conditions: t.field({
          type: [shared.conditionInput],
          description: 'Conditions that were observed; others stay. Null: none.',
        }),
        reason: t.string({ description: INPUT_WORDS.reason }),
        message: t.string({ description: INPUT_WORDS.message }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: addPayload(builder, 'patchRuntimeStatus', 'runtime', types.Runtime, 'The runtime as it is now.'),
    failures: ['NotFound', 'VersionConflict', 'InvalidInput', 'IdempotencyKeyReused'],
    run: (caller, value) => commands.patchRuntimeStatus(caller, value),
  });
}
