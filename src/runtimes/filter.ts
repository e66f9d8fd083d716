import { filterSchema, type Filter, type Predicate } from '../kernel/filter.js';

/** Filter fields of runtimes, by the names of the row. */
export type RuntimeFilterField = 'namespace' | 'name' | 'type' | 'environment';
export type RuntimeFilter = Filter<RuntimeFilterField>;
export type RuntimePredicate = Predicate<RuntimeFilterField>;

export const runtimeFilterSchema = filterSchema<RuntimeFilterField>({
  labels: true,
  fields: {
    namespace: { kind: 'text' },
    name: { kind: 'text' },
    type: { kind: 'text' },
    environment: { kind: 'text' },
  },
});
