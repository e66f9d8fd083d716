import type { EnumRef } from '@pothos/core';

import type { Graph } from '../graph/graph.js';
import type { Types } from '../graph/graph-types.js';
import { INPUT_WORDS } from '../graph/input-words.js';
import { addMutation, addPayload } from '../graph/mutation.js';
import type { ReleaseCommands } from './commands.js';
import { LABEL_MAX, RESOURCES_MAX } from './input.js';
import type { Reschedule, ResourceLifecycle } from './model.js';

interface Enums {
  readonly lifecycle: EnumRef<Types, ResourceLifecycle>;
  readonly reschedule: EnumRef<Types, Reschedule>;
}

/** The one write of releases: they never change. */
export function addReleaseMutations(
  { builder, types }: Graph,
  enums: Enums,
  commands: ReleaseCommands,
): void {
  const resource = builder.inputType('ResourceInput', {
    description: 'One part of a release.',
    fields: (t) => ({
      name: t.string({
        required: true,
        description: 'Its name, unique in the release: 1 to 63 lower-case letters, digits or `-`.',
      }),
      serviceType: t.string({
        required: true,
        description: 'What kind of service it is: who can carry it out.',
      }),
      spec: t.field({
        type: 'JSONObject',
        description: 'What it is to be, at most 64 KiB as JSON. Null: empty.',
      }),
      requires: t.stringList({
        description: 'Names of resources of the same release that must be ready first. Null: none.',
      }),
      lifecycle: t.field({ type: enums.lifecycle, description: 'How long it lives. Null: LIVE.' }),
      reschedule: t.field({ type: enums.reschedule, description: 'Whether it may be moved. Null: NEVER.' }),
    }),
  });
  const fact = (what: string) => ({ description: `${what} At most 1024 characters. Null: not said.` });
  const source = builder.inputType('ReleaseSourceInput', {
    description: 'Where a release was built from.',
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
  addMutation(builder, 'createRelease', {
    description: 'Creates a release, for good: it never changes, and its label is never free again.',
    object: 'RELEASE',
    input: builder.inputType('CreateReleaseInput', {
      description: 'What the release is.',
      fields: (t) => ({
        namespace: t.string({ description: 'Its namespace. Null: `default`.' }),
        app: t.string({
          required: true,
          description: 'The app that it is a release of: 1 to 63 lower-case letters, digits or `-`.',
        }),
        label: t.string({
          required: true,
          description: `What it is called: at most ${LABEL_MAX} letters, digits or \`.\`, \`_\`, \`+\`, \`-\`.`,
        }),
        description: t.string({
          description: 'What is in it, for people, at most 4096 characters. Null: nothing said.',
        }),
        resources: t.field({
          type: [resource],
          required: true,
          description: `What it consists of: 1 to ${RESOURCES_MAX}, together at most 1 MiB as JSON.`,
        }),
        source: t.field({ type: source, description: 'Where it was built from. Null: nothing said.' }),
        idempotencyKey: t.string({ description: INPUT_WORDS.idempotencyKey }),
      }),
    }),
    payload: addPayload(builder, 'createRelease', 'release', types.Release, 'The new release.'),
    failures: ['NotFound', 'InvalidInput', 'AlreadyExists', 'IdempotencyKeyReused'],
    run: (caller, value) => commands.createRelease(caller, value),
  });
}
