import { filterSchema, type Filter, type Predicate } from '../kernel/filter.js';

/** Filter fields of releases, by the names of the row. Releases have no labels of the selectable kind. */
export type ReleaseFilterField = 'namespace' | 'app' | 'label';
export type ReleaseFilter = Filter<ReleaseFilterField>;
export type ReleasePredicate = Predicate<ReleaseFilterField>;

export const releaseFilterSchema = filterSchema<ReleaseFilterField>({
  labels: false,
  fields: { namespace: { kind: 'text' }, app: { kind: 'text' }, label: { kind: 'text' } },
});
