import { createHash } from 'node:crypto';

import { canonicalJson } from '../../kernel/json.js';
import type { ReleaseResource } from '../../releases/index.js';
import { bound, UnknownOutput } from '../bindings.js';
import type { AdapterTarget, Outputs } from '../contract.js';
import { levelsOf } from '../levels.js';
import { directoryPath } from './directory.js';
import { httpAddress } from './health.js';
import type { Host } from './host.js';
import { absolutePath, directorySpecSchema, processSpecSchema, supports, type ProcessSpec } from './spec.js';
import { identityOf } from './reports.js';
import { RESERVED_NAMES } from './words.js';

/** One LIVE resource as it should run, every binding replaced. */
export interface Planned {
  readonly name: string;
  readonly level: number;
  readonly spec: ProcessSpec;
  readonly argv: readonly string[];
  readonly cwd: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Of what a running program cannot take up without a new start. */
  readonly hash: string;
  readonly outputs: Outputs;
  readonly endpoint: string | null;
}

export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

export interface Plan {
  readonly levels: readonly (readonly Planned[])[];
  readonly frozen: readonly ReleaseResource[];
}

/** Everything that can be refused is refused here, before anything is touched. Outputs are known from the specs alone. */
export function planOf(host: Host, target: AdapterTarget): Plan | { readonly refusal: Refusal } {
  const { release } = target;
  if (release === null) return refuse('ReleaseMissing', 'there is no release to run');
  const reserved = target.env.find(({ name }) => RESERVED_NAMES.has(name));
  if (reserved) return refuse('ReservedVariable', `\`env.${reserved.name}\`: programs are told by it`);
  // Told by name alone: the system's own refusal would print the value.
  const unfit = target.env.find(({ value }) => value.includes('\0'));
  if (unfit) return refuse('InvalidVariable', `\`env.${unfit.name}\` must not contain NUL`);
  for (const resource of release.resources) {
    const verdict = supports(resource);
    if (!verdict.ok) return refuse(verdict.reason, verdict.message);
  }
  const frozen = release.resources.filter(({ lifecycle }) => lifecycle === 'FROZEN');
  const live = release.resources.filter(({ lifecycle }) => lifecycle === 'LIVE');
  const names = new Set(live.map(({ name }) => name));
  const wrong = frozen.find(({ requires }) => requires.some((name) => names.has(name)));
  if (wrong) return refuse('InvalidRequirement', `\`${wrong.name}\` is FROZEN and requires what is not`);
  return planned(host, target, { frozen, live });
}

function planned(
  host: Host,
  target: AdapterTarget,
  {
    frozen,
    live,
  }: { readonly frozen: readonly ReleaseResource[]; readonly live: readonly ReleaseResource[] },
): Plan | { readonly refusal: Refusal } {
  const outputs = new Map<string, Outputs>(
    frozen.map((resource) => [resource.name, directoryOutputs(host, identityOf(target), resource)]),
  );
  for (const { name, spec } of live) outputs.set(name, processOutputs(processSpecSchema.parse(spec)));
  const levels: Planned[][] = [];
  for (const [level, resources] of levelsOf(live).entries()) {
    const these: Planned[] = [];
    for (const resource of resources) {
      const one = planResource(target, resource, { outputs, level });
      if ('refusal' in one) return one;
      these.push(one);
    }
    levels.push(these);
  }
  return { levels, frozen };
}

function planResource(
  target: AdapterTarget,
  { name, spec: given }: ReleaseResource,
  { outputs, level }: { readonly outputs: ReadonlyMap<string, Outputs>; readonly level: number },
): Planned | { readonly refusal: Refusal } {
  const spec = processSpecSchema.parse(given);
  try {
    const argv = spec.command.map((text) => bound(text, outputs));
    const cwd = spec.cwd === undefined ? null : bound(spec.cwd, outputs);
    if (/^(?:$|-)/.test(argv[0] ?? '')) {
      return refuse('InvalidBinding', `\`${name}.spec.command.0\` is not the name or path of a program`);
    }
    if (cwd !== null && !absolutePath(cwd)) {
      return refuse('InvalidBinding', `\`${name}.spec.cwd\` must be an absolute path without \`..\``);
    }
    const own = Object.entries(spec.env).map(([key, text]) => [key, bound(text, outputs)] as const);
    const env = Object.fromEntries([
      ...own,
      ...target.env.map(({ name: key, value }) => [key, value] as const),
    ]);
    const hash = createHash('sha256').update(canonicalJson({ argv, cwd, env })).digest('hex');
    const endpoint = endpointOf(spec);
    return { name, level, spec, argv, cwd, env, hash, outputs: outputs.get(name) ?? {}, endpoint };
  } catch (error) {
    if (error instanceof UnknownOutput) return refuse('InvalidBinding', `\`${name}.spec\`: ${error.message}`);
    throw error;
  }
}

function refuse(reason: string, message: string): { readonly refusal: Refusal } {
  return { refusal: { reason, message } };
}

const HERE = '127.0.0.1';

function processOutputs(spec: ProcessSpec): Outputs {
  const ports = Object.entries(spec.ports);
  const first = ports[0]?.[1] ?? spec.health.http?.port ?? spec.health.tcp?.port;
  const url = spec.health.http && httpAddress(spec.health.http).origin;
  return {
    host: HERE,
    ...(first === undefined ? {} : { port: String(first) }),
    ...Object.fromEntries(ports.map(([name, port]) => [`ports.${name}`, String(port)])),
    ...(url === undefined ? {} : { url }),
  };
}

/** Where people reach it: the address of its health check, else its first port. */
function endpointOf(spec: ProcessSpec): string | null {
  const { url, host, port } = processOutputs(spec);
  if (url !== undefined) return url;
  return port === undefined ? null : `tcp://${spec.health.tcp?.host ?? host}:${port}`;
}

export function directoryOutputs(host: Host, deploymentId: string, resource: ReleaseResource): Outputs {
  const { name = resource.name } = directorySpecSchema.parse(resource.spec);
  return { path: directoryPath(host.layout, deploymentId, { resource: resource.name, name }) };
}
