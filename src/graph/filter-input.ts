import type { EnumRef, InputRef } from '@pothos/core';
import type { z } from 'zod';

import type { FieldFilter, Filter, LabelFilter } from '../kernel/filter.js';
import { FILTER_DEPTH_MAX, FILTER_LEAVES_MAX, FILTER_VALUES_MAX } from '../kernel/filter.js';
import { addEnum } from './enum.js';
import { operationError } from './errors.js';
import type { Builder, Types } from './graph-types.js';

/** Filter inputs, the same for lists and streams; their meaning is `kernel/filter.ts`. */
export interface FilterInputs {
  readonly text: InputRef<FieldFilter>;
  readonly id: InputRef<FieldFilter>;
  readonly label: InputRef<LabelFilter>;
}

const EQUALS = 'The value must be this one.';
const IN = `The value must be one of these, at most ${FILTER_VALUES_MAX}. An empty list matches nothing.`;
const NOT_IN = `The value must be none of these, at most ${FILTER_VALUES_MAX}. Absent values match.`;

export function addFilterInputs(builder: Builder): FilterInputs {
  const operator = addEnum(builder, 'LabelOperator', 'How a label is compared.', {
    IN: 'The label is there, with one of the values.',
    NOT_IN: 'The label is absent, or has another value.',
    EXISTS: 'The label is there, with any value.',
    NOT_EXISTS: 'The label is absent.',
  });
  return {
    text: builder.inputType('TextFilter', {
      description: 'What a text must be. What stands side by side must all hold.',
      fields: (t) => ({
        equals: t.string({ description: EQUALS }),
        in: t.stringList({ description: IN }),
        notIn: t.stringList({ description: NOT_IN }),
        startsWith: t.string({
          description: 'The text must begin with this, upper and lower case told apart.',
        }),
      }),
    }),
    id: builder.inputType('IdFilter', {
      description: 'Which id it must be. What stands side by side must all hold.',
      fields: (t) => ({
        equals: t.id({ description: EQUALS }),
        in: t.idList({ description: IN }),
        notIn: t.idList({ description: NOT_IN }),
      }),
    }),
    label: builder.inputType('LabelRequirement', {
      description: 'What one label must be, as in Kubernetes.',
      fields: (t) => ({
        key: t.string({ required: true, description: 'The key of the label.' }),
        operator: t.field({ type: operator, required: true, description: 'How it is compared.' }),
        values: t.stringList({
          description: `For IN and NOT_IN: 1 to ${FILTER_VALUES_MAX} values. Null or empty for the others.`,
        }),
      }),
    }),
  };
}

/** `DeploymentPhaseFilter`: exact comparison with values of an enumeration. */
export function addEnumFilter<V extends string>(
  builder: Builder,
  name: string,
  type: EnumRef<Types, V>,
): InputRef<FieldFilter> {
  return builder.inputType(`${name}Filter`, {
    description: `Which ${name} it must be. What stands side by side must all hold.`,
    fields: (t) => ({
      equals: t.field({ type, description: EQUALS }),
      in: t.field({ type: [type], description: IN }),
      notIn: t.field({ type: [type], description: NOT_IN }),
    }),
  }); // values of an enumeration are texts
}

/** `DeploymentFilter` with and, or, not and, if the objects have them, labels. */
export function addFilter<F extends string>(
  builder: Builder,
  inputs: FilterInputs,
  name: string,
  fields: Readonly<Record<F, { readonly type: InputRef<FieldFilter>; readonly description: string }>>,
  labels: boolean,
): InputRef<Filter<F>> {
  const filter = builder.inputRef<Record<string, unknown>>(`${name}Filter`);
  filter.implement({
    description: `Which ${name.toLowerCase()}s are meant. What stands side by side must all hold; at most ${FILTER_DEPTH_MAX} levels and ${FILTER_LEAVES_MAX} comparisons. Empty: all.`,
    fields: (t) => ({
      and: t.field({ type: [filter], description: 'All of these must hold. Null: no such condition.' }),
      or: t.field({
        type: [filter],
        description: 'At least one of these must hold. Null: no such condition.',
      }),
      not: t.field({ type: filter, description: 'This must not hold. Null: no such condition.' }),
      ...(labels
        ? {
            labels: t.field({
              type: [inputs.label],
              description: 'What the labels must be; all must hold. Null: anything.',
            }),
          }
        : {}),
      ...Object.fromEntries(
        Object.entries<{ type: InputRef<FieldFilter>; description: string }>(fields).map(
          ([field, { type, description }]) => [
            field,
            t.field({ type, description: `${description} Null: any.` }),
          ],
        ),
      ),
    }),
  });
  return filter as unknown as InputRef<Filter<F>>; // the same fields, by name
}

/** The predicate of a filter argument, or an operation error that names everything that is wrong with it. */
export function parseFilter<P>(schema: z.ZodType<P>, filter: unknown): P {
  const parsed = schema.safeParse(filter ?? undefined);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues
    .slice(0, 20)
    .map((issue) => `\`${['filter', ...issue.path.map(String)].join('.')}\` ${issue.message}`);
  throw operationError('BAD_USER_INPUT', `${issues.join('; ')}.`);
}
