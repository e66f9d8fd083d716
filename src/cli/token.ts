/**
 * `npm run token -- create`: makes an API token with the database alone, for the first ADMIN token and for whoever lost
 * the last one. Whoever can run it holds the database, so it asks for no rights. The secret goes to standard output,
 * alone, so that it can be piped; everything for people goes to standard error.
 */
import { parseArgs } from 'node:util';

import { loadConfig } from '../config/config.js';
import { systemClock, parseMoment } from '../kernel/clock.js';
import { silentLog } from '../kernel/log.js';
import { StartError } from '../kernel/start-error.js';
import { makeTokenBeside } from '../main.js';

const USAGE = `Usage: npm run token -- create --name <name> --role <role> [--role <role>] [options]

  --name <name>            for people
  --role <role>            VIEWER, DEPLOYER, OPERATOR, CONTROLLER, AGENT or ADMIN; may be repeated
  --namespace <namespace>  may be repeated; default: all
  --agent <name>           for the role AGENT: one agent, or the beginning of its name with a * at the end
  --expires <when>         90m, 12h, 30d, or a moment such as 2030-01-31T12:00:00Z; default: never

The database is the server's: DATABASE_URL, or the embedded one in SLIPWAY_DATA_DIR.
`;

/** Exit code 0: made; 1: the database or the input refused it; 2: not called as it should be. */
export async function main(argv: readonly string[]): Promise<void> {
  try {
    const input = inputOf(argv);
    const { token, secret } = await makeTokenBeside(loadConfig(), { log: silentLog }, input);
    const until = token.expiresAt === null ? 'never expires' : `expires ${token.expiresAt.toISOString()}`;
    process.stderr.write(
      `Made ${token.id} (${token.roles.join(', ')} in ${token.namespaces.join(', ')}; ${until}). ` +
        'Its secret is shown this once:\n',
    );
    process.stdout.write(`${secret}\n`);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\n\n${USAGE}`);
      process.exitCode = 2;
    } else if (error instanceof StartError) {
      process.stderr.write(`${error.publicMessage}\n`);
      process.exitCode = 1;
    } else {
      throw error;
    }
  }
}

class UsageError extends Error {
  override readonly name = 'UsageError';
}

function inputOf(argv: readonly string[]): Readonly<Record<string, unknown>> {
  const { values, positionals } = parsed(argv);
  if (positionals.length !== 1 || positionals[0] !== 'create') {
    throw new UsageError('Only `create` is known here.');
  }
  if (values.name === undefined || values.role === undefined) {
    throw new UsageError('--name and --role are needed.');
  }
  return {
    name: values.name,
    roles: values.role,
    namespaces: values.namespace,
    agentName: values.agent,
    expiresAt: values.expires === undefined ? null : momentOf(values.expires),
  };
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        name: { type: 'string' },
        role: { type: 'string', multiple: true },
        namespace: { type: 'string', multiple: true },
        agent: { type: 'string' },
        expires: { type: 'string' },
      },
    });
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : 'The arguments are wrong.', { cause });
  }
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

function momentOf(text: string): Date {
  const span = /^(\d{1,6})([mhd])$/.exec(text);
  if (span) {
    const unit = span[2] as keyof typeof UNIT_MS; // the pattern lets no other letter through
    return new Date(systemClock.now().getTime() + Number(span[1]) * UNIT_MS[unit]);
  }
  const moment = parseMoment(text);
  if (!moment) {
    throw new UsageError(`--expires must be a span such as 30d or a moment in ISO 8601, not ${text}.`);
  }
  return moment;
}
