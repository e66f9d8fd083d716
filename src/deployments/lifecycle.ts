import { z } from 'zod';

/**
 * The lifecycle of a deployment: the one source of its phases and of every move between them. The enums of the graph
 * and of the input parser are built from this table, and the server refuses to start if the database has others.
 *
 * - `facts`: moves that what happened makes; reported by the controller of an external runtime, or by the engine.
 * - `intents`: moves that a user's mutation makes. A report can never make them.
 * - `engine`: moves that this server alone makes, at work on what an operator asked for. A report can never make them.
 * - settled: nothing more happens by itself. It never means that it went well: `failed` phases are settled too.
 * - terminal: nothing happens any more.
 *
 * Two moves stand outside the table. The engine may enter ERROR from every phase that is not terminal. And forgetting
 * or detaching, an audited step of an operator, enters DELETED from every phase.
 */
interface PhaseRule {
  readonly facts: readonly string[];
  readonly intents: readonly string[];
  readonly engine?: readonly string[];
  readonly settled: boolean;
  readonly failed: boolean;
  readonly terminal: boolean;
  /** One sentence of what is going on, for `status.summary` and the graph's descriptions. */
  readonly meaning: string;
}

const MOVING = { settled: false, failed: false, terminal: false } as const;
const SETTLED = { settled: true, failed: false, terminal: false } as const;
const FAILED = { settled: true, failed: true, terminal: false } as const;

export const LIFECYCLE = {
  PENDING: {
    ...MOVING,
    facts: ['INITIAL_SETUP', 'PREFLIGHTS_FAILED'],
    intents: ['UNDEPLOYED', 'DELETE_PENDING'],
    meaning: 'Waiting to be set up.',
  },
  PREFLIGHTS_FAILED: {
    ...FAILED,
    facts: [],
    intents: ['PENDING', 'UNDEPLOYED', 'DELETE_PENDING'],
    meaning: 'Checks made before the first setup failed.',
  },
  INITIAL_SETUP: {
    ...MOVING,
    facts: ['PROVISIONING', 'INITIAL_SETUP_FAILED'],
    intents: ['PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Setting up the resources that outlive releases.',
  },
  INITIAL_SETUP_FAILED: {
    ...FAILED,
    facts: [],
    intents: ['INITIAL_SETUP', 'PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Setting up the resources that outlive releases failed.',
  },
  PROVISIONING: {
    ...MOVING,
    facts: ['RUNNING', 'WAITING_FOR_AGENTS', 'PROVISIONING_FAILED'],
    intents: ['PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Bringing up its resources for the first time.',
  },
  PROVISIONING_FAILED: {
    ...FAILED,
    facts: [],
    intents: ['PROVISIONING', 'PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Bringing up its resources failed.',
  },
  WAITING_FOR_AGENTS: {
    ...MOVING,
    facts: ['PROVISIONING', 'UPDATING', 'PROVISIONING_FAILED', 'UPDATE_FAILED'],
    intents: ['PENDING', 'UPDATE_PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Waiting for an agent that can take the work.',
  },
  RUNNING: {
    ...SETTLED,
    facts: ['REFRESH_FAILED'],
    intents: ['UPDATE_PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Running.',
  },
  REFRESH_FAILED: {
    ...FAILED,
    facts: ['RUNNING'],
    intents: ['UPDATE_PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'A health check failed; healthy again, it goes on running by itself.',
  },
  UPDATE_PENDING: {
    ...MOVING,
    facts: ['UPDATING', 'UPDATE_FAILED'],
    intents: ['UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Waiting for an update to begin.',
  },
  UPDATING: {
    ...MOVING,
    facts: ['RUNNING', 'WAITING_FOR_AGENTS', 'UPDATE_FAILED'],
    intents: ['UPDATE_PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Moving what runs to what is wanted.',
  },
  UPDATE_FAILED: {
    ...FAILED,
    facts: [],
    intents: ['UPDATE_PENDING', 'UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'An update failed.',
  },
  UNDEPLOYING: {
    ...MOVING,
    facts: ['UNDEPLOYED', 'UNDEPLOY_FAILED'],
    intents: ['DELETE_PENDING'],
    meaning: 'Taking down what runs.',
  },
  UNDEPLOY_FAILED: {
    ...FAILED,
    facts: [],
    intents: ['UNDEPLOYING', 'DELETE_PENDING'],
    meaning: 'Taking down what runs failed.',
  },
  UNDEPLOYED: {
    ...SETTLED,
    facts: [],
    intents: ['PENDING', 'DELETE_PENDING'],
    meaning: 'Nothing runs, as wanted.',
  },
  DELETE_PENDING: {
    ...MOVING,
    facts: ['DELETING', 'DELETE_FAILED'],
    intents: [],
    meaning: 'Waiting to be deleted.',
  },
  DELETING: {
    ...MOVING,
    facts: ['DELETED', 'TEARDOWN_REQUIRED', 'DELETE_FAILED'],
    intents: [],
    meaning: 'Removing everything that runs.',
  },
  DELETE_FAILED: {
    ...FAILED,
    facts: [],
    intents: ['DELETING'],
    meaning: 'Removing what runs failed.',
  },
  TEARDOWN_REQUIRED: {
    ...SETTLED,
    facts: [],
    intents: [],
    // Tearing down is an admin's to begin: whoever reports on what runs must not be able to say that it was done.
    engine: ['DELETED', 'TEARDOWN_FAILED'],
    meaning:
      'Resources that outlive releases remain until they are torn down. No report ends this; an admin can drop the record (`deleteDeployment` with mode FORGET).',
  },
  TEARDOWN_FAILED: {
    ...FAILED,
    facts: [],
    intents: ['TEARDOWN_REQUIRED'],
    meaning: 'Tearing down the resources that outlive releases failed.',
  },
  DELETED: {
    settled: true,
    failed: false,
    terminal: true,
    facts: [],
    intents: [],
    meaning: 'Deleted.',
  },
  ERROR: {
    ...FAILED,
    facts: [],
    intents: ['DELETE_PENDING'],
    meaning: 'An impossible state was met; it can only be deleted.',
  },
} as const satisfies Readonly<Record<string, PhaseRule>>;

export type DeploymentPhase = keyof typeof LIFECYCLE;
/** In the order of the table, which is that of the database's enum. */
export const DEPLOYMENT_PHASES = Object.keys(LIFECYCLE) as [DeploymentPhase, ...DeploymentPhase[]]; // its own keys
export const deploymentPhaseSchema = z.enum(DEPLOYMENT_PHASES, {
  error: `must be one of ${DEPLOYMENT_PHASES.join(', ')}`,
});

/** The table as its rules see it: the literal types above would make every look-up a comparison of unlike unions. */
export type Lifecycle = Readonly<Record<DeploymentPhase, PhaseRule>>;
const TABLE: Lifecycle = LIFECYCLE;

export function rulesOf(phase: DeploymentPhase): PhaseRule {
  return TABLE[phase];
}

/** What makes the move from one phase to another; null if nothing may. */
export type Edge = 'fact' | 'intent' | 'engine' | 'audited';

export function edgeOf(from: DeploymentPhase, to: DeploymentPhase): Edge | null {
  const rule = TABLE[from];
  if (rule.facts.includes(to)) return 'fact';
  if (rule.intents.includes(to)) return 'intent';
  if (rule.engine?.includes(to)) return 'engine';
  if (rule.terminal || from === to) return null;
  if (to === 'ERROR') return 'engine';
  if (to === 'DELETED') return 'audited';
  return null;
}

/** Phases that a deployment is on its way out in: only deletion, or what it leaves behind, is ahead. */
export const DELETION_PHASES: ReadonlySet<DeploymentPhase> = new Set([
  'DELETE_PENDING',
  'DELETING',
  'DELETE_FAILED',
  'TEARDOWN_REQUIRED',
  'TEARDOWN_FAILED',
  'DELETED',
]);

/** Phases in which nothing of the deployment runs, so that what was observed of it is no more. */
export const NOTHING_RUNS: ReadonlySet<DeploymentPhase> = new Set(['UNDEPLOYED', 'DELETED']);

/**
 * What a new spec makes of each phase; `refuse` where none may come, `keep` where the phase already waits for it.
 * `byHistory`: an update if something ran before, else a first set-up.
 */
export const ON_NEW_SPEC: Readonly<
  Record<DeploymentPhase, DeploymentPhase | 'keep' | 'refuse' | 'byHistory'>
> = {
  PENDING: 'keep',
  PREFLIGHTS_FAILED: 'PENDING',
  INITIAL_SETUP: 'PENDING',
  INITIAL_SETUP_FAILED: 'PENDING',
  PROVISIONING: 'PENDING',
  PROVISIONING_FAILED: 'PENDING',
  WAITING_FOR_AGENTS: 'byHistory',
  RUNNING: 'UPDATE_PENDING',
  REFRESH_FAILED: 'UPDATE_PENDING',
  UPDATE_PENDING: 'keep',
  UPDATING: 'UPDATE_PENDING',
  UPDATE_FAILED: 'UPDATE_PENDING',
  UNDEPLOYING: 'refuse',
  UNDEPLOY_FAILED: 'refuse',
  UNDEPLOYED: 'PENDING',
  DELETE_PENDING: 'refuse',
  DELETING: 'refuse',
  DELETE_FAILED: 'refuse',
  TEARDOWN_REQUIRED: 'refuse',
  TEARDOWN_FAILED: 'refuse',
  DELETED: 'refuse',
  ERROR: 'refuse',
};

/** What undeploying makes of each phase. */
export const ON_UNDEPLOY: Readonly<Record<DeploymentPhase, DeploymentPhase | 'keep' | 'refuse'>> = {
  PENDING: 'UNDEPLOYED',
  PREFLIGHTS_FAILED: 'UNDEPLOYED',
  INITIAL_SETUP: 'UNDEPLOYING',
  INITIAL_SETUP_FAILED: 'UNDEPLOYING',
  PROVISIONING: 'UNDEPLOYING',
  PROVISIONING_FAILED: 'UNDEPLOYING',
  WAITING_FOR_AGENTS: 'UNDEPLOYING',
  RUNNING: 'UNDEPLOYING',
  REFRESH_FAILED: 'UNDEPLOYING',
  UPDATE_PENDING: 'UNDEPLOYING',
  UPDATING: 'UNDEPLOYING',
  UPDATE_FAILED: 'UNDEPLOYING',
  UNDEPLOYING: 'keep',
  // A failed take-down moves by retry alone: asking again for what is already wanted changes nothing.
  UNDEPLOY_FAILED: 'keep',
  UNDEPLOYED: 'keep',
  DELETE_PENDING: 'refuse',
  DELETING: 'refuse',
  DELETE_FAILED: 'refuse',
  TEARDOWN_REQUIRED: 'refuse',
  TEARDOWN_FAILED: 'refuse',
  DELETED: 'refuse',
  ERROR: 'refuse',
};

/** Where cancelling goes back to what serves; only what is on its way can turn back. */
export const ON_CANCEL: Readonly<Record<DeploymentPhase, DeploymentPhase | 'keep' | 'refuse'>> = {
  PENDING: 'refuse',
  PREFLIGHTS_FAILED: 'refuse',
  INITIAL_SETUP: 'refuse',
  INITIAL_SETUP_FAILED: 'refuse',
  PROVISIONING: 'refuse',
  PROVISIONING_FAILED: 'refuse',
  WAITING_FOR_AGENTS: 'UPDATE_PENDING',
  RUNNING: 'refuse',
  REFRESH_FAILED: 'refuse',
  UPDATE_PENDING: 'keep',
  UPDATING: 'UPDATE_PENDING',
  UPDATE_FAILED: 'refuse',
  UNDEPLOYING: 'refuse',
  UNDEPLOY_FAILED: 'refuse',
  UNDEPLOYED: 'refuse',
  DELETE_PENDING: 'refuse',
  DELETING: 'refuse',
  DELETE_FAILED: 'refuse',
  TEARDOWN_REQUIRED: 'refuse',
  TEARDOWN_FAILED: 'refuse',
  DELETED: 'refuse',
  ERROR: 'refuse',
};

/** Where a retry begins again; null where there is nothing to retry. */
export const ON_RETRY: Readonly<Record<DeploymentPhase, DeploymentPhase | null>> = {
  PENDING: null,
  PREFLIGHTS_FAILED: 'PENDING',
  INITIAL_SETUP: null,
  INITIAL_SETUP_FAILED: 'INITIAL_SETUP',
  PROVISIONING: null,
  PROVISIONING_FAILED: 'PROVISIONING',
  WAITING_FOR_AGENTS: null,
  RUNNING: null,
  // It would recover by itself; whoever does not want to wait for that has it applied again.
  REFRESH_FAILED: 'UPDATE_PENDING',
  UPDATE_PENDING: null,
  UPDATING: null,
  UPDATE_FAILED: 'UPDATE_PENDING',
  UNDEPLOYING: null,
  UNDEPLOY_FAILED: 'UNDEPLOYING',
  UNDEPLOYED: null,
  DELETE_PENDING: null,
  DELETING: null,
  DELETE_FAILED: 'DELETING',
  TEARDOWN_REQUIRED: null,
  TEARDOWN_FAILED: 'TEARDOWN_REQUIRED',
  DELETED: null,
  ERROR: null,
};

/** Where deployments begin: PENDING when applied. */
const FIRST_PHASE: DeploymentPhase = 'PENDING';

/** What is wrong with a table, one sentence each; empty if nothing is. */
export function lifecycleProblems(table: Readonly<Record<string, PhaseRule>> = TABLE): string[] {
  const phases = Object.keys(table);
  const problems: string[] = [];
  for (const [phase, rule] of Object.entries(table)) {
    const edges = edgesOut(rule);
    for (const to of edges) {
      if (!(to in table)) problems.push(`${phase} leads to ${to}, which is no phase`);
      if (to === phase) problems.push(`${phase} leads to itself`);
      if (edges.indexOf(to) !== edges.lastIndexOf(to)) problems.push(`${phase} to ${to} is of two kinds`);
    }
    if (rule.terminal && edges.length > 0) problems.push(`${phase} is terminal and has an edge out`);
    if (!rule.terminal && edges.length === 0) {
      problems.push(`${phase} is neither terminal nor has an edge out`);
    }
    if ((rule.failed || rule.terminal) && !rule.settled) {
      problems.push(`${phase} has ended and is not settled`);
    }
  }
  const reached = reachable(table);
  for (const phase of phases) if (!reached.has(phase)) problems.push(`${phase} can not be reached`);
  return problems;
}

function edgesOut({ facts, intents, engine = [] }: PhaseRule): readonly string[] {
  return [...facts, ...intents, ...engine];
}

function reachable(table: Readonly<Record<string, PhaseRule>>): ReadonlySet<string> {
  // ERROR is entered by the engine from anywhere.
  const reached = new Set<string>([FIRST_PHASE, 'ERROR']);
  for (const phase of reached) {
    const rule = table[phase];
    // A set hands out what is added while it is walked.
    for (const to of rule ? edgesOut(rule) : []) reached.add(to);
  }
  return reached;
}

/** Start-up check. Throws with everything that is wrong: with such a table the server must not run. */
export function checkLifecycle(): void {
  const problems = lifecycleProblems();
  for (const phase of DEPLOYMENT_PHASES) problems.push(...intentProblems(phase));
  if (problems.length > 0) throw new Error(`the lifecycle table is broken: ${problems.join('; ')}`);
}

/** Every intent table may use only the edges of the lifecycle. */
function intentProblems(phase: DeploymentPhase): string[] {
  return [ON_NEW_SPEC[phase], ON_UNDEPLOY[phase], ON_CANCEL[phase], ON_RETRY[phase]]
    .flatMap((to): DeploymentPhase[] => {
      if (to === null || to === 'keep' || to === 'refuse') return [];
      return to === 'byHistory' ? ['PENDING', 'UPDATE_PENDING'] : [to];
    })
    .filter((to) => edgeOf(phase, to) !== 'intent')
    .map((to) => `no intent moves ${phase} to ${to}`);
}
