import { describe, expect, it } from 'vitest';

import {
  applyLabels,
  applySpec,
  dropRecord,
  requestDelete,
  retry,
  undeploy,
  type IntentDecision,
} from '../../../src/deployments/intents.js';
import {
  checkLifecycle,
  DEPLOYMENT_PHASES,
  deploymentPhaseSchema,
  edgeOf,
  LIFECYCLE,
  lifecycleProblems,
  rulesOf,
  type DeploymentPhase,
} from '../../../src/deployments/lifecycle.js';
import type { DeploymentState } from '../../../src/deployments/model.js';
import { applyStatus } from '../../../src/deployments/status.js';
import { LATER, stateIn } from '../../support/deployment-state.js';

/** Written down a second time, by hand, from the contract of the lifecycle: the table has to agree cell by cell. */
interface ExpectedRow {
  readonly flags: '' | 'S' | 'F' | 'T';
  readonly facts: string;
  readonly intents: string;
  readonly engine?: string;
}
const EXPECTED: Record<DeploymentPhase, ExpectedRow> = {
  PENDING: { flags: '', facts: 'INITIAL_SETUP PREFLIGHTS_FAILED', intents: 'UNDEPLOYED DELETE_PENDING' },
  PREFLIGHTS_FAILED: { flags: 'F', facts: '', intents: 'PENDING UNDEPLOYED DELETE_PENDING' },
  INITIAL_SETUP: {
    flags: '',
    facts: 'PROVISIONING INITIAL_SETUP_FAILED',
    intents: 'PENDING UNDEPLOYING DELETE_PENDING',
  },
  INITIAL_SETUP_FAILED: {
    flags: 'F',
    facts: '',
    intents: 'INITIAL_SETUP PENDING UNDEPLOYING DELETE_PENDING',
  },
  PROVISIONING: {
    flags: '',
    facts: 'RUNNING WAITING_FOR_AGENTS PROVISIONING_FAILED',
    intents: 'PENDING UNDEPLOYING DELETE_PENDING',
  },
  PROVISIONING_FAILED: { flags: 'F', facts: '', intents: 'PROVISIONING PENDING UNDEPLOYING DELETE_PENDING' },
  WAITING_FOR_AGENTS: {
    flags: '',
    facts: 'PROVISIONING UPDATING PROVISIONING_FAILED UPDATE_FAILED',
    intents: 'PENDING UPDATE_PENDING UNDEPLOYING DELETE_PENDING',
  },
  RUNNING: { flags: 'S', facts: 'REFRESH_FAILED', intents: 'UPDATE_PENDING UNDEPLOYING DELETE_PENDING' },
  REFRESH_FAILED: { flags: 'F', facts: 'RUNNING', intents: 'UPDATE_PENDING UNDEPLOYING DELETE_PENDING' },
  UPDATE_PENDING: { flags: '', facts: 'UPDATING UPDATE_FAILED', intents: 'UNDEPLOYING DELETE_PENDING' },
  UPDATING: {
    flags: '',
    facts: 'RUNNING WAITING_FOR_AGENTS UPDATE_FAILED',
    intents: 'UPDATE_PENDING UNDEPLOYING DELETE_PENDING',
  },
  UPDATE_FAILED: { flags: 'F', facts: '', intents: 'UPDATE_PENDING UNDEPLOYING DELETE_PENDING' },
  UNDEPLOYING: { flags: '', facts: 'UNDEPLOYED UNDEPLOY_FAILED', intents: 'DELETE_PENDING' },
  UNDEPLOY_FAILED: { flags: 'F', facts: '', intents: 'UNDEPLOYING DELETE_PENDING' },
  UNDEPLOYED: { flags: 'S', facts: '', intents: 'PENDING DELETE_PENDING' },
  DELETE_PENDING: { flags: '', facts: 'DELETING DELETE_FAILED', intents: '' },
  DELETING: { flags: '', facts: 'DELETED TEARDOWN_REQUIRED DELETE_FAILED', intents: '' },
  DELETE_FAILED: { flags: 'F', facts: '', intents: 'DELETING' },
  TEARDOWN_REQUIRED: { flags: 'S', facts: '', intents: '', engine: 'DELETED TEARDOWN_FAILED' },
  TEARDOWN_FAILED: { flags: 'F', facts: '', intents: 'TEARDOWN_REQUIRED' },
  DELETED: { flags: 'T', facts: '', intents: '' },
  ERROR: { flags: 'F', facts: '', intents: 'DELETE_PENDING' },
};

function expectedEdge(from: DeploymentPhase, to: DeploymentPhase) {
  const row = EXPECTED[from];
  if (row.facts.split(' ').includes(to)) return 'fact';
  if (row.intents.split(' ').includes(to)) return 'intent';
  if (row.engine?.split(' ').includes(to)) return 'engine';
  if (from === 'DELETED' || from === to) return null;
  if (to === 'ERROR') return 'engine';
  return to === 'DELETED' ? 'audited' : null;
}

const cells = DEPLOYMENT_PHASES.flatMap((from) =>
  DEPLOYMENT_PHASES.map((to) => ({ from, to, edge: expectedEdge(from, to) })),
);

describe('the lifecycle table', () => {
  it('has the 22 phases, and the input parser knows exactly them', () => {
    expect(DEPLOYMENT_PHASES).toEqual(Object.keys(EXPECTED));
    expect(DEPLOYMENT_PHASES).toHaveLength(22);
    expect(deploymentPhaseSchema.options).toEqual(DEPLOYMENT_PHASES);
  });

  it.each(cells)('$from → $to is $edge', ({ from, to, edge }) => {
    expect(edgeOf(from, to)).toBe(edge);
  });

  it.each(Object.entries(EXPECTED))('%s has its flags', (phase, { flags }) => {
    const { settled, failed, terminal } = rulesOf(phase as DeploymentPhase); // a key of the table
    expect({ settled, failed, terminal }).toEqual({
      settled: flags !== '',
      failed: flags === 'F',
      terminal: flags === 'T',
    });
  });
});

describe('a report', () => {
  it.each(cells.filter(({ from, to }) => from !== to))('$from → $to: $edge', ({ from, to, edge }) => {
    const decision = applyStatus(stateIn(from), { phase: to }, LATER);
    if (edge === 'fact') {
      expect(decision).toMatchObject({ kind: 'applied', status: { phase: to } });
      return;
    }
    const allowed = EXPECTED[from].facts.split(' ').filter((phase) => phase !== '');
    expect(decision).toMatchObject({
      kind: 'refused',
      failure: { kind: 'InvalidTransition', from, to, allowed },
    });
    const message = decision.kind === 'refused' ? decision.failure.message : '';
    for (const named of [from, to, ...allowed]) expect(message).toContain(named);
    expect(message.includes('only a user’s mutation')).toBe(edge === 'intent');
    expect(message.includes('only the server itself')).toBe(edge === 'engine');
  });

  it.each(DEPLOYMENT_PHASES)('repeats %s without a change', (phase) => {
    expect(applyStatus(stateIn(phase), { phase }, LATER)).toEqual({ kind: 'unchanged' });
  });
});

describe('a teardown', () => {
  it('is ended by no report, whatever else the report carries', () => {
    for (const phase of ['DELETED', 'TEARDOWN_FAILED'] as const) {
      const report = { phase, environmentInfo: null, observedGeneration: 1, reason: 'TornDown' };
      expect(applyStatus(stateIn('TEARDOWN_REQUIRED'), report, LATER)).toMatchObject({
        kind: 'refused',
        failure: { kind: 'InvalidTransition', from: 'TEARDOWN_REQUIRED', to: phase, allowed: [] },
      });
    }
  });

  it('says in its meaning what still ends it', () => {
    expect(rulesOf('TEARDOWN_REQUIRED').meaning).toContain('FORGET');
  });
});

describe('an intent', () => {
  const running = { currentReleaseId: 'rel_current' };
  const intents: Record<string, (state: DeploymentState) => IntentDecision> = {
    apply: (state) => applySpec(state, { releaseId: 'rel_new' }),
    label: (state) => applyLabels(state, { team: 'x' }),
    undeploy,
    retry,
    delete: (state) => requestDelete(state, LATER),
    detach: (state) => dropRecord(state, 'Detached', LATER),
    forget: (state) => dropRecord(state, 'Forgotten', LATER),
  };
  const told = (state: DeploymentState, name: string): string => {
    const decision = intents[name]?.(state);
    if (decision?.kind === 'applied') return decision.change.phase ?? 'labels';
    return decision?.kind === 'refused' ? decision.failure.kind : 'unchanged';
  };

  // phase: apply, undeploy, retry, delete; detach and forget always end in DELETED.
  const I = 'InvalidTransition';
  const T = 'Terminating';
  const D = 'DELETE_PENDING';
  const BY_INTENT: Record<DeploymentPhase, readonly [string, string, string, string]> = {
    PENDING: ['PENDING', 'UNDEPLOYED', I, D],
    PREFLIGHTS_FAILED: ['PENDING', 'UNDEPLOYED', 'PENDING', D],
    INITIAL_SETUP: ['PENDING', 'UNDEPLOYING', I, D],
    INITIAL_SETUP_FAILED: ['PENDING', 'UNDEPLOYING', 'INITIAL_SETUP', D],
    PROVISIONING: ['PENDING', 'UNDEPLOYING', I, D],
    PROVISIONING_FAILED: ['PENDING', 'UNDEPLOYING', 'PROVISIONING', D],
    WAITING_FOR_AGENTS: ['PENDING', 'UNDEPLOYING', I, D],
    RUNNING: ['UPDATE_PENDING', 'UNDEPLOYING', I, D],
    REFRESH_FAILED: ['UPDATE_PENDING', 'UNDEPLOYING', 'UPDATE_PENDING', D],
    UPDATE_PENDING: ['UPDATE_PENDING', 'UNDEPLOYING', I, D],
    UPDATING: ['UPDATE_PENDING', 'UNDEPLOYING', I, D],
    UPDATE_FAILED: ['UPDATE_PENDING', 'UNDEPLOYING', 'UPDATE_PENDING', D],
    UNDEPLOYING: [I, 'unchanged', I, D],
    UNDEPLOY_FAILED: [I, 'unchanged', 'UNDEPLOYING', D],
    UNDEPLOYED: ['PENDING', 'unchanged', I, D],
    DELETE_PENDING: [T, T, I, 'unchanged'],
    DELETING: [T, T, I, 'unchanged'],
    DELETE_FAILED: [T, T, 'DELETING', 'unchanged'],
    TEARDOWN_REQUIRED: [T, T, I, 'unchanged'],
    TEARDOWN_FAILED: [T, T, 'TEARDOWN_REQUIRED', 'unchanged'],
    DELETED: [T, T, I, 'unchanged'],
    ERROR: [I, I, I, D],
  };
  const asked = Object.entries(BY_INTENT).flatMap(([phase, answers]) =>
    (['apply', 'undeploy', 'retry', 'delete', 'detach', 'forget'] as const).map((name, at) => ({
      phase: phase as DeploymentPhase, // a key of the table
      name,
      answer: answers[at] ?? (phase === 'DELETED' ? 'unchanged' : 'DELETED'),
    })),
  );
  it.each(asked)('$name in $phase gives $answer', ({ phase, name, answer }) => {
    expect(told(stateIn(phase), name)).toBe(answer);
  });

  it.each(DEPLOYMENT_PHASES)('edits labels in %s, and moves nothing, unless it is being deleted', (phase) => {
    const leaving = stateIn(phase).deletionRequestedAt !== null;
    expect(told(stateIn(phase, running), 'label')).toBe(leaving ? T : 'labels');
  });

  it('goes on with an update when something ran before the wait for agents, and sets up when nothing did', () => {
    expect(told(stateIn('WAITING_FOR_AGENTS', running), 'apply')).toBe('UPDATE_PENDING');
    expect(told(stateIn('WAITING_FOR_AGENTS'), 'apply')).toBe('PENDING');
  });

  it.each(asked)('$name in $phase moves by an edge of the table, or not at all', ({ phase, name }) => {
    const decision = intents[name]?.(stateIn(phase, running));
    const to = decision?.kind === 'applied' ? decision.change.phase : undefined;
    // Dropping the record ends in DELETED from everywhere, also where a report could.
    if (to === undefined || to === phase || to === 'DELETED') return;
    expect(expectedEdge(phase, to)).toBe('intent');
  });
});

describe('checkLifecycle', () => {
  const rule = { settled: false, failed: false, terminal: false, meaning: '' };
  const end = { ...rule, settled: true, terminal: true, facts: [], intents: [] };

  it('passes the table', () => {
    expect(() => checkLifecycle()).not.toThrow();
    expect(lifecycleProblems(LIFECYCLE)).toEqual([]);
  });

  it('finds a phase without a way out', () => {
    const table = {
      PENDING: { ...rule, facts: ['STUCK'], intents: [] },
      STUCK: { ...rule, facts: [], intents: [] },
    };
    expect(lifecycleProblems(table)).toEqual(['STUCK is neither terminal nor has an edge out']);
  });

  it('finds a phase that nothing leads to', () => {
    const table = { PENDING: { ...rule, facts: ['END'], intents: [] }, END: end, LOST: { ...end } };
    expect(lifecycleProblems(table)).toEqual(['LOST can not be reached']);
  });

  it('finds edges to nowhere, to oneself, and of two kinds', () => {
    const table = { PENDING: { ...rule, facts: ['GONE', 'PENDING', 'END'], intents: ['END'] }, END: end };
    expect(lifecycleProblems(table)).toEqual([
      'PENDING leads to GONE, which is no phase',
      'PENDING leads to itself',
      'PENDING to END is of two kinds',
      'PENDING to END is of two kinds',
    ]);
  });

  it('counts the edges of the server itself as ways, and finds one that is of two kinds', () => {
    const table = {
      PENDING: { ...rule, facts: [], intents: [], engine: ['END', 'HALF'] },
      HALF: { ...rule, facts: ['END'], intents: [], engine: ['END'] },
      END: end,
    };
    expect(lifecycleProblems(table)).toEqual(['HALF to END is of two kinds', 'HALF to END is of two kinds']);
  });

  it('finds a terminal phase with an edge out, and an ended one that is not settled', () => {
    const table = {
      PENDING: { ...rule, facts: ['END', 'BAD'], intents: [] },
      END: { ...end, facts: ['PENDING'] },
      BAD: { ...rule, failed: true, facts: ['END'], intents: [] },
    };
    expect(lifecycleProblems(table)).toEqual([
      'END is terminal and has an edge out',
      'BAD has ended and is not settled',
    ]);
  });
});
