import type { ObjectRef } from '@pothos/core';

import { CONDITIONS_MAX, type Condition, type ConditionStatus } from '../kernel/conditions.js';
import { parseMoment } from '../kernel/clock.js';
import type { HeldLock } from '../kernel/failure.js';
import { addEnum } from './enum.js';
import { addFilterInputs } from './filter-input.js';
import type { Builder, Types } from './graph-types.js';

/** Small types that several domains use. */
export function addSharedTypes(builder: Builder) {
  const conditionStatus = addEnum<ConditionStatus>(
    builder,
    'ConditionStatus',
    'What is known of a condition.',
    {
      TRUE: 'It holds.',
      FALSE: 'It does not hold.',
      UNKNOWN: 'It could not be observed.',
    },
  );
  return {
    filters: addFilterInputs(builder),
    condition: conditionType(builder, conditionStatus),
    conditionInput: conditionInput(builder, conditionStatus),
    lock: lockType(builder),
    ...orderInputs(builder),
  };
}
export type SharedTypes = ReturnType<typeof addSharedTypes>;

function lockType(builder: Builder): ObjectRef<Types, HeldLock> {
  return builder.objectRef<HeldLock>('DeployLock').implement({
    description: 'Who is changing a deployment: one rollout at a time.',
    fields: (t) => ({
      deploymentId: t.exposeID('deploymentId', { description: 'The deployment.' }),
      rolloutId: t.exposeID('rolloutId', { description: 'The rollout that holds it.' }),
      startedBy: t.exposeString('startedBy', {
        description: 'Who began that: an actor as in `Change.actor`.',
      }),
      acquiredAt: t.field({
        type: 'DateTime',
        description: 'Since when.',
        resolve: (lock) => lock.acquiredAt,
      }),
      expiresAt: t.field({
        type: 'DateTime',
        description: 'When others may take it, unless its holder shows a sign of life before.',
        resolve: (lock) => lock.expiresAt,
      }),
    }),
  });
}

type StatusRef = ReturnType<typeof addEnum<ConditionStatus>>;

function conditionType(builder: Builder, status: StatusRef): ObjectRef<Types, Condition> {
  return builder.objectRef<Condition>('Condition').implement({
    description: 'One typed observation of an object, as a controller reported it.',
    fields: (t) => ({
      type: t.exposeString('type', {
        description: 'What is observed, `Ready` say. An object has one condition of each type.',
      }),
      status: t.field({
        type: status,
        description: 'Whether it holds.',
        resolve: (condition) => condition.status,
      }),
      reason: t.exposeString('reason', { description: 'Why, for machines: `HealthCheckFailed`.' }),
      message: t.exposeString('message', {
        description: 'Why, for people; at most 4 KiB, empty if nothing was said.',
      }),
      lastTransitionAt: t.field({
        type: 'DateTime',
        description: 'When `status` last flipped.',
        resolve: (condition) => {
          const moment = parseMoment(condition.lastTransitionAt);
          if (!moment) throw new Error('a stored condition has no moment');
          return moment;
        },
      }),
      observedGeneration: t.exposeInt('observedGeneration', {
        description: 'The generation of the object that was observed.',
      }),
    }),
  });
}

function conditionInput(builder: Builder, status: StatusRef) {
  return builder.inputType('ConditionInput', {
    description: `A condition as it is reported; at most ${CONDITIONS_MAX} types an object. Those not reported stay as they are.`,
    fields: (t) => ({
      type: t.string({ required: true, description: 'What is observed: 1 to 128 letters, digits or `_`.' }),
      status: t.field({ type: status, required: true, description: 'Whether it holds.' }),
      reason: t.string({
        required: true,
        description: 'Why, for machines: 1 to 128 letters, digits or `_`.',
      }),
      message: t.string({ description: 'Why, for people; beyond 4 KiB it is cut. Null: nothing said.' }),
      observedGeneration: t.int({
        description: 'The generation that was observed. Null: that of the whole report.',
      }),
    }),
  });
}

function orderInputs(builder: Builder) {
  const direction = builder.enumType('OrderDirection', {
    description: 'Which end of a list comes first.',
    values: {
      ASC: { value: 'asc', description: 'Oldest first, or A to Z.' },
      DESC: { value: 'desc', description: 'Newest first, or Z to A.' },
    } as const,
  });
  const field = builder.enumType('OrderField', {
    description:
      'What a list is sorted by: facts that never change, so that no object is met twice or missed while pages are turned.',
    values: {
      CREATED_AT: { value: 'createdAt', description: 'When the object was created.' },
      NAME: { value: 'name', description: 'The name of the object.' },
    } as const,
  });
  const directionField = 'Which end comes first. Default: ASC.';
  return {
    order: builder.inputType('OrderBy', {
      description: 'The order of a list. Objects with equal values follow each other by id.',
      fields: (t) => ({
        field: t.field({
          type: field,
          required: true,
          defaultValue: 'createdAt',
          description: 'What to sort by. Default: CREATED_AT.',
        }),
        direction: t.field({
          type: direction,
          required: true,
          defaultValue: 'asc',
          description: directionField,
        }),
      }),
    }),
    creationOrder: builder.inputType('CreationOrderBy', {
      description: 'The order of a list of objects without names: by when they were created, then by id.',
      fields: (t) => ({
        direction: t.field({
          type: direction,
          required: true,
          defaultValue: 'asc',
          description: directionField,
        }),
      }),
    }),
  };
}
