import type { Queryable } from './database.js';

/** Start-up check: throws if the values of an enum of the database are not those that this version knows. */
export async function checkStoredEnums(
  db: Queryable,
  enums: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const { rows } = await db.query<{ name: string; value: string }>({
    text: `SELECT t.typname AS name, e.enumlabel AS value FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid
            WHERE t.typname = ANY ($1) AND t.typnamespace = 'public'::regnamespace ORDER BY t.typname, e.enumsortorder`,
    values: [Object.keys(enums)],
  });
  const problems = Object.entries(enums).flatMap(([name, coded]) => {
    const stored = rows.filter((row) => row.name === name).map(({ value }) => value);
    const lacking = coded.filter((value) => !stored.includes(value));
    const unknown = stored.filter((value) => !coded.includes(value));
    const parts = [
      ...(lacking.length > 0 ? [`the database lacks ${lacking.join(', ')}`] : []),
      ...(unknown.length > 0 ? [`it has unknown ${unknown.join(', ')}`] : []),
    ];
    return parts.length > 0 ? [`${name}: ${parts.join('; ')}`] : [];
  });
  if (problems.length === 0) return;
  throw new Error(`the enums of the database are not those of this version: ${problems.join('. ')}`);
}
