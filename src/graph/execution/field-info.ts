import type { GraphQLResolveInfo } from 'graphql';

import type { CompiledField, Path, Run } from './compiled.js';

/** What a resolver gets last. Most never look at it, so it is three words until one does. */
export class FieldInfo implements GraphQLResolveInfo {
  readonly #run: Run;
  readonly #field: CompiledField;
  readonly #parent: Path | undefined;

  constructor(run: Run, field: CompiledField, parent: Path | undefined) {
    this.#run = run;
    this.#field = field;
    this.#parent = parent;
  }

  get fieldName() {
    return this.#field.definition.name;
  }
  get fieldNodes() {
    return this.#field.nodes;
  }
  get returnType() {
    return this.#field.definition.type;
  }
  get parentType() {
    return this.#field.parentType;
  }
  get path(): Path {
    return { prev: this.#parent, key: this.#field.key, typename: this.#field.parentType.name };
  }
  get schema() {
    return this.#run.schema;
  }
  get fragments() {
    return this.#field.variant.fragments;
  }
  get rootValue() {
    return this.#run.rootValue;
  }
  get operation() {
    return this.#field.variant.operation;
  }
  get variableValues() {
    return this.#run.variables as Record<string, unknown>; // graphql-js types it as changeable
  }
}
