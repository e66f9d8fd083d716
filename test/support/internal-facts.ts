import { readFileSync } from 'node:fs';

/** What `schema.prisma` marks `/// @internal`, and how its models refer to each other. */
export interface InternalFacts {
  readonly models: ReadonlySet<string>;
  /** `Model.field` of columns and relations, those that lead to an internal model included. */
  readonly fields: ReadonlySet<string>;
  /** `Model.field` → the model that the relation leads to. */
  readonly relations: ReadonlyMap<string, string>;
}

export function internalFacts(
  source = readFileSync(new URL('../../prisma/schema.prisma', import.meta.url), 'utf8'),
): InternalFacts {
  const models = new Set<string>();
  const fields = new Set<string>();
  const types = new Map<string, string>();
  let model: string | undefined;
  let marked = false;
  for (const line of source.split('\n').map((one) => one.trim())) {
    const opening = /^(?:model|view) (\w+) \{/.exec(line)?.[1];
    const field = /^(\w+)\s+(\w+)/.exec(line);
    if (line === '/// @internal') marked = true;
    else if (opening !== undefined) {
      model = opening;
      if (marked) models.add(opening);
      marked = false;
    } else if (line === '}') model = undefined;
    else if (model !== undefined && field && !line.startsWith('//')) {
      const [, name, type] = field;
      types.set(`${model}.${name}`, String(type));
      if (marked) fields.add(`${model}.${name}`);
      marked = false;
    }
  }
  const names = new Set([...types.keys()].map((key) => key.split('.')[0]));
  const relations = new Map([...types].filter(([, type]) => names.has(type)));
  for (const [key, type] of relations) if (models.has(type)) fields.add(key);
  return { models, fields, relations };
}
