/**
 * Plans of what a server really asks: every statement that a process sends is written down as it is sent, and explained
 * afterwards on a database of some size.
 */
import pg from 'pg';

/** Tables that grow with the fleet or with time. */
const LARGE = new Set([
  'deployment',
  'deployment_internal',
  'runtime',
  'release',
  'agent',
  'agent_internal',
  'token',
  'token_secret',
  'token_use',
  'change',
  'change_payload',
  'idempotency_record',
]);

export interface Asked {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Of a prepared statement, which PostgreSQL may plan once for all values. */
  readonly name: string | undefined;
  /** What was going on when it was first asked. */
  readonly during: string;
}

export interface StatementRecord {
  /** By text and by what was going on: other values may make another plan. */
  readonly asked: ReadonlyMap<string, Asked>;
  during: string;
  stop(): void;
}

/** Writes down what this process asks any PostgreSQL, over whatever pool or library, until it is stopped. */
export function recordStatements(): StatementRecord {
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown; // one of its many overloads
  const asked = new Map<string, Asked>();
  const record: StatementRecord = {
    asked,
    during: 'start',
    stop: () => void (pg.Client.prototype.query = query as typeof pg.Client.prototype.query),
  };
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const [config, values] = args as [string | pg.QueryConfig, unknown]; // its overloads
    const { during } = record;
    const given = typeof config === 'string' ? values : (config.values ?? values);
    const text = typeof config === 'string' ? config : config.text;
    const name = typeof config === 'string' ? undefined : config.name;
    const key = `${during}: ${text}`;
    const known = asked.get(key);
    if (known === undefined || (known.name === undefined && name !== undefined)) {
      asked.set(key, { text, values: Array.isArray(given) ? given : [], name, during });
    }
    return query.apply(this, args);
  } as typeof pg.Client.prototype.query; // stands in for all overloads
  return record;
}

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Node[];
}

export interface Verdict {
  /** Large tables that the plan reads from end to end. */
  readonly walked: readonly string[];
  /** Rows of large tables that were read; 0 where it was only planned. */
  readonly read: number;
}

/** Whether there is a plan at all, and whether trying it out is harmless: inserts would meet their own rows. */
const PLANNED = /^\s*(with|select|insert|update|delete)\b/i;
const INSERTS = /\binsert into\b/i;
export const isPlanned = ({ text }: Asked): boolean => PLANNED.test(text);

/** With its values, run and rolled back. */
export async function explainRun(
  client: pg.Client,
  { text, values }: Asked,
  inserts = INSERTS.test(text),
): Promise<Verdict> {
  const options = inserts ? 'FORMAT JSON' : 'ANALYZE, FORMAT JSON';
  await client.query('BEGIN');
  try {
    return await verdictOf(client, { text: `EXPLAIN (${options}) ${text}`, values: [...values] });
  } finally {
    await client.query('ROLLBACK');
  }
}

/** With a plan that was made for any values, as PostgreSQL may do with what is prepared, and then with these. */
export async function explainGeneric(client: pg.Client, one: Asked): Promise<Verdict> {
  await client.query('SET plan_cache_mode = force_generic_plan');
  await client.query(`PREPARE planned AS ${one.text}`);
  try {
    const values = one.values.length === 0 ? '' : `(${one.values.map(literal).join(', ')})`;
    return await explainRun(
      client,
      { ...one, text: `EXECUTE planned${values}`, values: [] },
      INSERTS.test(one.text),
    );
  } finally {
    await client.query('DEALLOCATE planned; RESET plan_cache_mode');
  }
}

/** As the driver would send it. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  if (value instanceof Date) return pg.escapeLiteral(value.toISOString());
  if (Array.isArray(value)) return pg.escapeLiteral(`{${value.map((one) => JSON.stringify(one)).join()}}`);
  return pg.escapeLiteral(typeof value === 'object' ? JSON.stringify(value) : String(value)); // no objects else
}

async function verdictOf(client: pg.Client, statement: pg.QueryConfig): Promise<Verdict> {
  const { rows } = await client.query<{ 'QUERY PLAN': readonly { readonly Plan: Node }[] }>(statement);
  const nodes = rows.flatMap((row) => row['QUERY PLAN'].flatMap(({ Plan }) => flatten(Plan)));
  const large = nodes.filter((node) => LARGE.has(node['Relation Name'] ?? ''));
  return {
    walked: large
      .filter((node) => node['Node Type'] === 'Seq Scan')
      .map((node) => node['Relation Name'] ?? ''),
    read: large.reduce((sum, node) => sum + rowsRead(node), 0),
  };
}

const flatten = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(flatten)];

function rowsRead(node: Node): number {
  const once =
    (node['Actual Rows'] ?? 0) +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0);
  return once * (node['Actual Loops'] ?? 0);
}
