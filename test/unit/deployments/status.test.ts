import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { DEPLOYMENT_PHASES, edgeOf, NOTHING_RUNS, rulesOf } from '../../../src/deployments/lifecycle.js';
import type { DeploymentState, DeploymentStatus } from '../../../src/deployments/model.js';
import { applyStatus, statusOf, type StatusReport } from '../../../src/deployments/status.js';
import { CONDITIONS_MAX, type Condition } from '../../../src/kernel/conditions.js';
import { AT, LATER, stateIn } from '../../support/deployment-state.js';

const RUNTIME = { id: 'i-1', name: 'web', resourceId: 'arn:1', endpoint: 'http://web' };
const INFO = {
  provider: 'p',
  account: null,
  region: null,
  location: null,
  hostname: 'h',
  os: 'linux',
  arch: null,
};
const ERROR = { code: 'Crashed', message: 'exit 1', retryable: true };
const READY: Condition = {
  type: 'Ready',
  status: 'TRUE',
  reason: 'Up',
  message: '',
  lastTransitionAt: AT.toISOString(),
  observedGeneration: 1,
};

function applied(state: DeploymentState, report: StatusReport): DeploymentStatus {
  const decision = applyStatus(state, report, LATER);
  if (decision.kind !== 'applied') throw new Error(`not applied: ${JSON.stringify(decision)}`);
  return decision.status;
}
function refusal(state: DeploymentState, report: StatusReport) {
  const decision = applyStatus(state, report, LATER);
  return decision.kind === 'refused' ? decision.failure : undefined;
}

describe('applyStatus: conditions', () => {
  it('merges by type: names none, loses none', () => {
    const state = stateIn('RUNNING', { conditions: [READY] });
    const { conditions } = applied(state, { conditions: [{ type: 'Live', status: 'TRUE', reason: 'Seen' }] });
    expect(conditions.map(({ type }) => type)).toEqual(['Ready', 'Live']);
    expect(conditions[0]).toEqual(READY);
  });

  it('moves lastTransitionAt only when the status flips', () => {
    const state = stateIn('RUNNING', { conditions: [READY] });
    const other = applied(state, { conditions: [{ type: 'Ready', status: 'TRUE', reason: 'StillUp' }] });
    expect(other.conditions[0]).toMatchObject({ reason: 'StillUp', lastTransitionAt: AT.toISOString() });
    const flipped = applied(state, { conditions: [{ type: 'Ready', status: 'FALSE', reason: 'Down' }] });
    expect(flipped.conditions[0]).toMatchObject({ status: 'FALSE', lastTransitionAt: LATER.toISOString() });
  });

  it('refuses a type too many, naming the bound', () => {
    const conditions = Array.from({ length: CONDITIONS_MAX }, (_, n) => ({ ...READY, type: `C${n}` }));
    const failure = refusal(stateIn('RUNNING', { conditions }), {
      conditions: [{ type: 'OneMore', status: 'TRUE', reason: 'X' }],
    });
    expect(failure).toMatchObject({ kind: 'InvalidInput', issues: [{ path: ['input', 'conditions'] }] });
  });
});

describe('applyStatus: observedGeneration', () => {
  const state = stateIn('UPDATING', { generation: 3, observedGeneration: 2 });

  it('never goes back', () => {
    expect(applyStatus(state, { observedGeneration: 1 }, LATER)).toEqual({ kind: 'unchanged' });
    const conditions = [{ ...READY, observedGeneration: 3 }];
    const report = {
      conditions: [{ type: 'Ready', status: 'TRUE', reason: 'Old', observedGeneration: 1 } as const],
    };
    expect(applied({ ...state, conditions }, report).conditions[0]).toMatchObject({ observedGeneration: 3 });
  });

  it('never passes the generation, neither of the report nor of a condition', () => {
    expect(refusal(state, { observedGeneration: 4 })).toMatchObject({
      kind: 'InvalidInput',
      issues: [
        { path: ['input', 'observedGeneration'], message: "must be at most 3, the deployment's generation" },
      ],
    });
    expect(
      refusal(state, { conditions: [{ type: 'A', status: 'TRUE', reason: 'X', observedGeneration: 4 }] }),
    ).toMatchObject({ issues: [{ path: ['input', 'conditions', '0', 'observedGeneration'] }] });
  });

  it('does not promote what a report about an earlier spec calls running', () => {
    expect(refusal(state, { phase: 'RUNNING', observedGeneration: 2 })).toMatchObject({
      kind: 'InvalidInput',
      issues: [
        {
          path: ['input', 'observedGeneration'],
          message: "must be 3, the deployment's generation, to report RUNNING",
        },
      ],
    });
    expect(applied(state, { phase: 'RUNNING', observedGeneration: 3 }).phase).toBe('RUNNING');
  });
});

describe('applyStatus: delete intent', () => {
  const deleting = stateIn('DELETE_PENDING', { currentReleaseId: 'rel_current' });

  it('keeps the resource facts of a stale report and sets its phase aside', () => {
    const report: StatusReport = { phase: 'RUNNING', runtime: RUNTIME, environmentInfo: INFO };
    expect(applied(deleting, report)).toEqual({
      ...statusOf(deleting),
      observedRuntime: RUNTIME,
      environmentInfo: INFO,
    });
  });

  it('repeats that without a change', () => {
    const known = { ...deleting, observedRuntime: RUNTIME };
    expect(applyStatus(known, { phase: 'PROVISIONING', runtime: RUNTIME }, LATER)).toEqual({
      kind: 'unchanged',
    });
  });

  it('refuses a stale report that carries nothing but a phase', () => {
    expect(refusal(deleting, { phase: 'RUNNING' })).toMatchObject({ kind: 'InvalidTransition' });
  });

  it('refuses to skip a phase of the removal, with or without facts', () => {
    expect(refusal(deleting, { phase: 'DELETED', runtime: RUNTIME })).toMatchObject({
      kind: 'InvalidTransition',
    });
  });

  it('changes nothing of a deployment that is deleted', () => {
    const failure = refusal(stateIn('DELETED'), { conditions: [{ type: 'A', status: 'TRUE', reason: 'X' }] });
    expect(failure).toMatchObject({ kind: 'InvalidTransition', from: 'DELETED', allowed: [] });
  });
});

describe('applyStatus: releases', () => {
  it('promotes the target when it becomes RUNNING', () => {
    const state = stateIn('UPDATING', { currentReleaseId: 'rel_old', targetReleaseId: 'rel_new' });
    expect(applied(state, { phase: 'RUNNING' })).toMatchObject({
      currentReleaseId: 'rel_new',
      targetReleaseId: null,
    });
  });

  it('keeps what serves when it is healthy again', () => {
    const state = stateIn('REFRESH_FAILED', { currentReleaseId: 'rel_now', targetReleaseId: null });
    expect(applied(state, { phase: 'RUNNING' })).toMatchObject({
      currentReleaseId: 'rel_now',
      targetReleaseId: null,
    });
  });

  it('serves nothing when undeployed, and remembers what it would run', () => {
    const state = stateIn('UNDEPLOYING', {
      currentReleaseId: 'rel_now',
      targetReleaseId: null,
      observedRuntime: RUNTIME,
    });
    expect(applied(state, { phase: 'UNDEPLOYED', runtime: RUNTIME, environmentInfo: INFO })).toMatchObject({
      currentReleaseId: null,
      targetReleaseId: 'rel_now',
      observedRuntime: null,
      environmentInfo: null,
    });
  });
});

describe('applyStatus: error', () => {
  it('explains a failed phase, and goes with it', () => {
    const failed = applied(stateIn('PROVISIONING'), { phase: 'PROVISIONING_FAILED', error: ERROR });
    expect(failed.error).toEqual(ERROR);
    const recovered = applied(stateIn('REFRESH_FAILED', { error: ERROR }), { phase: 'RUNNING' });
    expect(recovered.error).toBeNull();
  });

  it('is made from reason and message when a failure is reported without one', () => {
    const report: StatusReport = {
      phase: 'UPDATE_FAILED',
      reason: 'NoDisk',
      message: 'disk full',
      error: null,
    };
    const status = applied(stateIn('UPDATING'), report);
    expect(status.error).toEqual({ code: 'NoDisk', message: 'disk full', retryable: true });
    expect(applyStatus({ ...stateIn('UPDATING'), ...status }, report, LATER)).toEqual({ kind: 'unchanged' });
  });

  it('is refused where there can be none', () => {
    expect(refusal(stateIn('PROVISIONING'), { phase: 'RUNNING', error: ERROR })).toMatchObject({
      kind: 'InvalidInput',
      issues: [
        { path: ['input', 'error'], message: 'must be absent: a deployment that is RUNNING has no error' },
      ],
    });
  });

  it('may warn while things move on, until the next move', () => {
    const warned = applied(stateIn('PROVISIONING'), { error: ERROR });
    expect(warned).toMatchObject({ phase: 'PROVISIONING', error: ERROR });
    expect(
      applied({ ...stateIn('PROVISIONING'), ...warned }, { phase: 'WAITING_FOR_AGENTS' }).error,
    ).toBeNull();
  });

  it('is cut to 4 KiB at a character boundary', () => {
    const message = `${'x'.repeat(4094)}€€`;
    const { error } = applied(stateIn('PROVISIONING'), { error: { ...ERROR, message } });
    expect(error?.message).toBe('x'.repeat(4094));
  });
});

it('a report consumes the retry request that it answers', () => {
  const retried = stateIn('PROVISIONING', { retryRequested: true });
  expect(applied(retried, { observedGeneration: 1 }).retryRequested).toBe(true);
  expect(applied(retried, { phase: 'RUNNING' }).retryRequested).toBe(false);
});

it('refuses to report about a protocol that this server does not know, and moves nothing', () => {
  const failure = refusal(stateIn('PROVISIONING', { protocolVersion: 2 }), { phase: 'RUNNING' });
  expect(failure).toMatchObject({ kind: 'IncompatibleProtocol', found: 2, minimum: 1, current: 1 });
});

describe('applyStatus, for any sequence of reports', () => {
  const report: fc.Arbitrary<StatusReport> = fc.record(
    {
      phase: fc.constantFrom(...DEPLOYMENT_PHASES),
      observedGeneration: fc.integer({ min: 0, max: 5 }),
      runtime: fc.constantFrom(RUNTIME, null),
      error: fc.constantFrom(ERROR, null),
      conditions: fc.array(
        fc.record({
          type: fc.constantFrom('A', 'B', 'C'),
          status: fc.constantFrom('TRUE' as const, 'FALSE' as const, 'UNKNOWN' as const),
          reason: fc.constantFrom('R', 'S'),
          observedGeneration: fc.integer({ min: 0, max: 4 }),
        }),
        { maxLength: 3 },
      ),
    },
    { requiredKeys: [] },
  );
  const start = fc.record({
    phase: fc.constantFrom(...DEPLOYMENT_PHASES),
    currentReleaseId: fc.constantFrom('rel_current', null),
  });

  it('moves along facts, never loses ground, repeats without a change, and leaves no error where there can be none', () => {
    fc.assert(
      fc.property(start, fc.array(report, { maxLength: 20 }), ({ phase, ...more }, reports) => {
        let state = stateIn(phase, { generation: 4, ...more });
        for (const one of reports) {
          const decision = applyStatus(state, one, LATER);
          if (decision.kind !== 'applied') continue;
          const { status } = decision;
          if (status.phase !== state.phase) expect(edgeOf(state.phase, status.phase)).toBe('fact');
          expect(status.observedGeneration).toBeGreaterThanOrEqual(state.observedGeneration);
          expect(status.observedGeneration).toBeLessThanOrEqual(state.generation);
          const { settled, failed } = rulesOf(status.phase);
          if (settled && !failed) expect(status.error).toBeNull();
          if (NOTHING_RUNS.has(status.phase)) expect(status.observedRuntime).toBeNull();
          expect((status.phase === 'DELETED') === (status.deletedAt !== null)).toBe(true);
          state = { ...state, ...status };
          expect(applyStatus(state, one, LATER).kind).toBe('unchanged');
        }
      }),
      { numRuns: 500 },
    );
  });
});
