import { z } from 'zod';

import { textSchema } from '../../kernel/text.js';
import { validated } from '../../kernel/validate.js';
import type { ReleaseResource } from '../../releases/index.js';
import { OK, unfit } from '../answers.js';
import { bindingProblem } from '../bindings.js';
import type { Verdict } from '../contract.js';
import { PORT_NAME, RESERVED_NAMES } from './words.js';

/** What the specs of the service types `process` and `directory` may say. Strict, bounded, every default here. */
const ARGUMENTS_MAX = 256;
const ARGUMENT_MAX = 16_384;
const COMMAND_MAX_BYTES = 65_536;
const PATH_MAX = 4096;
const ENV_MAX = 128;
const PORTS_MAX = 16;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/;

const seconds = (min: number, max: number, fallback: number) =>
  z
    .number()
    .min(min, { error: `must be between ${min} and ${max} seconds` })
    .max(max, { error: `must be between ${min} and ${max} seconds` })
    .default(fallback);

const portSchema = z
  .int()
  .min(1, { error: 'must be between 1 and 65535' })
  .max(65_535, { error: 'must be between 1 and 65535' });
const hostSchema = z.string().regex(/^[A-Za-z0-9.:_-]{1,253}$/, { error: 'must be a host name or address' });

const httpCheckSchema = z
  .strictObject({
    /** The whole address, or `port` and `path` on this host. */
    url: z
      .url({ protocol: /^https?$/, error: 'must be an address that begins with http:// or https://' })
      .max(2048)
      .optional(),
    port: portSchema.optional(),
    path: z
      .string()
      .max(2048)
      .regex(/^\/[!-~]*$/, { error: 'must begin with `/` and have printable ASCII without blanks' })
      .optional(),
    /** Absent: any of 200 to 399. Redirects are not followed. */
    expectStatus: z.int().min(100).max(599).optional(),
  })
  .refine((http) => (http.url === undefined) !== (http.port === undefined), {
    error: 'must have either `url` or `port`',
  })
  .refine((http) => http.url === undefined || http.path === undefined, {
    error: 'must not have both `url` and `path`',
  });

const healthSchema = z
  .strictObject({
    http: httpCheckSchema.optional(),
    tcp: z.strictObject({ port: portSchema, host: hostSchema.default('127.0.0.1') }).optional(),
    /** Between two checks that count. */
    intervalSeconds: seconds(0.1, 300, 5),
    timeoutSeconds: seconds(0.1, 30, 2),
    /** From its start until it must have been healthy once. */
    startSeconds: seconds(0.1, 3600, 60),
    /** Failed checks in a row, after it was healthy, that make it UNHEALTHY. */
    failureThreshold: z.int().min(1).max(20).default(3),
  })
  .refine((health) => health.http === undefined || health.tcp === undefined, {
    error: 'must have at most one of `http` and `tcp`',
  });

const commandSchema = z
  .array(textSchema(ARGUMENT_MAX))
  .min(1, { error: 'must have at least the program' })
  .max(ARGUMENTS_MAX, { error: `must have at most ${ARGUMENTS_MAX} arguments` })
  .refine((command) => Buffer.byteLength(command.join('\0')) <= COMMAND_MAX_BYTES, {
    error: `must have at most ${COMMAND_MAX_BYTES} bytes together`,
  })
  .refine((command) => !/^(?:$|-)/.test(command[0] ?? '-'), {
    error: 'must begin with the name or path of a program',
  });

const envSchema = z
  .record(z.string(), textSchema(32_768))
  .refine((env) => Object.keys(env).length <= ENV_MAX, { error: `must have at most ${ENV_MAX} variables` })
  .refine((env) => Object.keys(env).every((name) => ENV_NAME.test(name)), {
    error: 'must have names of at most 255 letters, digits or `_`, no digit first',
  })
  .refine((env) => !Object.keys(env).some((name) => RESERVED_NAMES.has(name)), {
    error: `must not set ${[...RESERVED_NAMES].join(', ')}: programs are told by them`,
  })
  .default({});

const portsSchema = z
  .record(z.string(), portSchema)
  .refine((ports) => Object.keys(ports).length <= PORTS_MAX, {
    error: `must have at most ${PORTS_MAX} ports`,
  })
  .refine((ports) => Object.keys(ports).every((name) => PORT_NAME.test(name)), {
    error: 'must have names of at most 32 letters, digits, `_` or `-`, with a letter first',
  })
  .default({});

export const processSpecSchema = z.strictObject({
  /** Program and arguments; no shell reads them. A name without `/` is looked up in PATH. */
  command: commandSchema,
  /** Absolute, without `..`. Absent: an empty folder of the resource's own, which goes with it. */
  cwd: textSchema(PATH_MAX, 1)
    .refine((cwd) => cwd.startsWith('${') || absolutePath(cwd), {
      error: 'must be an absolute path without `..`',
    })
    .optional(),
  /** The deployment's own variables win over these. */
  env: envSchema,
  /** Ports that the program listens on, by name: for what requires it, and for people. */
  ports: portsSchema,
  /** Without `http` and `tcp`, a program is healthy while it runs. */
  health: healthSchema.prefault({}),
  /** From SIGTERM to SIGKILL. */
  stopSeconds: seconds(0, 300, 10),
});
export type ProcessSpec = z.output<typeof processSpecSchema>;
export type HealthSpec = ProcessSpec['health'];
export { healthSchema };

export const directorySpecSchema = z.strictObject({
  /** The folder's last name; the resource's when absent. */
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, {
      error: 'must be 1 to 63 letters, digits, `.`, `_` or `-`, with a letter or digit first',
    })
    .optional(),
  /** Permissions, octal. The owner is the server's user and keeps every right. */
  mode: z
    .string()
    .regex(/^0?7[0-7]{2}$/, {
      error: 'must be octal permissions that leave the owner all rights, such as `0700`',
    })
    .default('0700'),
});

export function absolutePath(path: string): boolean {
  return path.startsWith('/') && !path.split('/').includes('..');
}

export function supports(resource: ReleaseResource): Verdict {
  switch (resource.serviceType) {
    case 'process':
      return processVerdict(resource);
    case 'directory':
      return directoryVerdict(resource);
    default:
      return unfit(
        'UnknownServiceType',
        `\`${resource.name}\` has service type \`${resource.serviceType}\`; runtimes of type \`process\` run \`process\` and \`directory\``,
      );
  }
}

function processVerdict({ name, lifecycle, spec, requires }: ReleaseResource): Verdict {
  if (lifecycle !== 'LIVE') {
    return unfit('InvalidLifecycle', `\`${name}.lifecycle\` must be LIVE: programs do not outlive releases`);
  }
  const parsed = validated(processSpecSchema, spec, [name, 'spec']);
  if (!parsed.done) return unfit('InvalidSpec', parsed.failure.message);
  for (const [path, text] of boundTexts(parsed.value)) {
    const problem = bindingProblem(text, requires);
    if (problem !== undefined) return unfit('InvalidBinding', `\`${name}.spec.${path}\` ${problem}`);
  }
  return OK;
}

function directoryVerdict({ name, lifecycle, spec }: ReleaseResource): Verdict {
  if (lifecycle !== 'FROZEN') {
    return unfit('InvalidLifecycle', `\`${name}.lifecycle\` must be FROZEN: directories outlive releases`);
  }
  const parsed = validated(directorySpecSchema, spec, [name, 'spec']);
  return parsed.done ? OK : unfit('InvalidSpec', parsed.failure.message);
}

/** Every text of the spec in which `${resource.output}` is replaced, with its path. */
function boundTexts({ command, cwd, env }: ProcessSpec): [path: string, text: string][] {
  return [
    ...command.map((text, index): [string, string] => [`command.${index}`, text]),
    ...(cwd === undefined ? [] : ([['cwd', cwd]] satisfies [string, string][])),
    ...Object.entries(env).map(([name, text]): [string, string] => [`env.${name}`, text]),
  ];
}
