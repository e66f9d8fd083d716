import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { AdapterOutcome } from '../../../src/adapters/contract.js';
import { answer, condition } from '../../../src/adapters/answers.js';
import { DEPLOYMENT_PHASES, edgeOf, rulesOf, type DeploymentPhase } from '../../../src/deployments/index.js';
import { callsOf, step, TRIES_MAX, type Facts, type StepRecord } from '../../../src/engine/step.js';

const NOW = new Date('2030-01-01T00:00:00.000Z');
const half = () => 0.5;

function record(phase: DeploymentPhase, over: Partial<StepRecord> = {}, running = false): StepRecord {
  return {
    deployment: {
      phase,
      desiredState: 'DEPLOYED',
      env: [],
      runtimeConfig: {},
      labels: {},
      generation: 3,
      protocolVersion: 1,
      deletionRequestedAt: null,
      deletedAt: null,
      conditions: [],
      observedGeneration: 2,
      observedRuntime: null,
      environmentInfo: null,
      error: null,
      currentReleaseId: running ? 'rel_a' : null,
      targetReleaseId: 'rel_b',
      retryRequested: false,
    },
    tries: 0,
    progressSince: null,
    progressDeadlineSeconds: 600,
    pending: null,
    preflights: [],
    frozen: { wanted: false, recorded: false },
    fingerprint: 'sha256:new',
    lastAppliedFingerprint: 'sha256:old',
    forceToken: null,
    lastForceToken: null,
    teardownRequested: false,
    ...over,
  };
}
const answered = (outcome: AdapterOutcome, facts = {}): Facts => ({ kind: 'answered', answer: answer(outcome, facts) });
const DONE = answered({ kind: 'done' });
const NOTHING: Facts = { kind: 'nothing' };
const THREW: Facts = { kind: 'threw', message: 'The runtime could not be reached.' };
const OUTCOMES: readonly AdapterOutcome[] = [
  { kind: 'done' },
  { kind: 'inProgress', delaySeconds: 2 },
  { kind: 'blocked', reason: 'Quota', message: 'No room.' },
  { kind: 'blocked', reason: 'NoReadyAgent', message: 'Nobody is ready.' },
  { kind: 'rejected', reason: 'BadSpec', message: '`command` must not be empty.' },
];
const factsArbitrary: fc.Arbitrary<Facts> = fc.oneof(
  fc.constant(NOTHING),
  fc.constant(THREW),
  fc.constantFrom(...OUTCOMES).map((outcome) => answered(outcome)),
  fc.constant(answered({ kind: 'done' }, { conditions: [condition('Healthy', 'FALSE', 'Exited', 'exit code 3')] })),
);
const recordArbitrary = fc
  .record({
    phase: fc.constantFrom(...DEPLOYMENT_PHASES),
    running: fc.boolean(),
    tries: fc.integer({ min: 0, max: TRIES_MAX }),
    late: fc.boolean(),
    pending: fc.boolean(),
    preflight: fc.boolean(),
    wanted: fc.boolean(),
    recorded: fc.boolean(),
    teardownRequested: fc.boolean(),
  })
  .map(({ phase, running, tries, late, pending, preflight, wanted, recorded, teardownRequested }) =>
    record(
      phase,
      {
        tries,
        progressSince: late ? new Date(0) : null,
        pending: pending ? { reason: 'ReferencePending', message: 'No such release.' } : null,
        preflights: preflight ? [{ reason: 'ResourceChanged', message: 'It became another type.' }] : [],
        frozen: { wanted, recorded },
        teardownRequested,
      },
      running,
    ),
  );

describe('step', () => {
  it('moves along the edges of the lifecycle that are the engine’s, and never skips one', () => {
    fc.assert(
      fc.property(recordArbitrary, factsArbitrary, (before, facts) => {
        const { report } = step(before, facts, NOW, half);
        const from = before.deployment.phase;
        const to = report.phase ?? from;
        expect(to === from || ['fact', 'engine'].includes(edgeOf(from, to) ?? ''), `${from} to ${to}`).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('looks again by itself exactly where the phase is not settled, or is observed', () => {
    fc.assert(
      fc.property(recordArbitrary, factsArbitrary, (before, facts) => {
        const { report, delayMs } = step(before, facts, NOW, half);
        const phase = report.phase ?? before.deployment.phase;
        const observed = phase === 'RUNNING' || phase === 'REFRESH_FAILED';
        const tearing = before.teardownRequested && phase === 'TEARDOWN_REQUIRED' && before.deployment.phase === phase;
        expect(delayMs !== null, phase).toBe(!rulesOf(phase).settled || observed || tearing);
      }),
      { numRuns: 2_000 },
    );
  });

  it('says why in `error` whenever it fails a phase', () => {
    fc.assert(
      fc.property(recordArbitrary, factsArbitrary, (before, facts) => {
        const { report } = step(before, facts, NOW, half);
        if (report.phase === undefined || !rulesOf(report.phase).failed) return;
        expect(report.error?.code).toBeTruthy();
        expect(report.error?.message).toBeTruthy();
        expect(report.reason).toBe(report.error?.code);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['PENDING', 'INITIAL_SETUP'],
    ['INITIAL_SETUP', 'PROVISIONING'],
    ['PROVISIONING', 'RUNNING'],
    ['UPDATE_PENDING', 'UPDATING'],
    ['UPDATING', 'RUNNING'],
    ['UNDEPLOYING', 'UNDEPLOYED'],
    ['DELETE_PENDING', 'DELETING'],
    ['DELETING', 'DELETED'],
  ] as const)('goes from %s to %s when it is done', (from, to) => {
    expect(step(record(from), DONE, NOW, half).report.phase).toBe(to);
  });

  it('leaves what outlives releases to a teardown', () => {
    const frozen = { wanted: true, recorded: true };
    expect(step(record('DELETING', { frozen }), DONE, NOW, half).report.phase).toBe('TEARDOWN_REQUIRED');
    expect(callsOf(record('TEARDOWN_REQUIRED', { frozen }))).toEqual([]);
    const asked = record('TEARDOWN_REQUIRED', { frozen, teardownRequested: true });
    expect(callsOf(asked)).toEqual([{ kind: 'remove', scope: 'FROZEN' }]);
    expect(step(asked, DONE, NOW, half).report.phase).toBe('DELETED');
  });

  it('applies unchanged input never, and a force request once', () => {
    const same = { lastAppliedFingerprint: 'sha256:new' };
    expect(callsOf(record('UPDATING', same))).toEqual([{ kind: 'observe' }]);
    expect(callsOf(record('UPDATING', { ...same, forceToken: 'a', lastForceToken: 'a' }))).toEqual([{ kind: 'observe' }]);
    const forced = record('UPDATING', { ...same, forceToken: 'b', lastForceToken: 'a' });
    expect(callsOf(forced)).toEqual([{ kind: 'apply', scope: 'LIVE' }]);
    expect(step(forced, DONE, NOW, half).applied).toEqual({ fingerprint: 'sha256:new', forceToken: 'b' });
  });

  it('keeps the last good fingerprint when a try fails, and forgets it when nothing runs', () => {
    const rejected = answered({ kind: 'rejected', reason: 'BadSpec', message: 'No.' });
    expect(step(record('UPDATING'), rejected, NOW, half)).toMatchObject({ applied: null, report: { phase: 'UPDATE_FAILED' } });
    expect(step(record('UNDEPLOYING'), DONE, NOW, half).applied).toBe('clear');
  });

  it('asks nothing of the adapter while a reference is missing, but goes on removing', () => {
    const pending = { reason: 'ReferencePending', message: 'The release is gone.' };
    expect(callsOf(record('PROVISIONING', { pending }))).toEqual([]);
    expect(step(record('PROVISIONING', { pending }), NOTHING, NOW, half)).toMatchObject({
      report: { conditions: [{ type: 'Ready', status: 'FALSE', reason: 'ReferencePending' }] },
      tries: 0,
    });
    expect(callsOf(record('DELETING', { pending }))).toEqual([{ kind: 'remove', scope: 'LIVE' }]);
  });

  it('tries what throws ten times, each time later, and then fails the phase', () => {
    let before = record('PROVISIONING');
    let last = 0;
    for (let n = 1; n < TRIES_MAX; n += 1) {
      const result = step(before, THREW, NOW, half);
      expect(result.tries).toBe(n);
      expect(result.delayMs).toBeGreaterThan(last);
      last = result.delayMs ?? 0;
      before = { ...before, tries: result.tries };
    }
    expect(step(before, THREW, NOW, half).report).toMatchObject({
      phase: 'PROVISIONING_FAILED',
      error: { code: 'AdapterFailed', retryable: true },
    });
  });

  it('ends at the deadline, the boundary instant included, unless it is done by then', () => {
    const progressSince = new Date(NOW.getTime() - 600_000);
    const slow = answered({ kind: 'inProgress', delaySeconds: 5 });
    expect(step(record('UPDATING', { progressSince }), slow, NOW, half).report).toMatchObject({
      phase: 'UPDATE_FAILED',
      error: { code: 'ProgressDeadlineExceeded' },
    });
    expect(step(record('UPDATING', { progressSince }), DONE, NOW, half).report.phase).toBe('RUNNING');
    const early = new Date(NOW.getTime() - 599_999);
    expect(step(record('UPDATING', { progressSince: early }), slow, NOW, half).report.phase).toBeUndefined();
  });

  it('observes without ever planning a change, and comes back by itself', () => {
    expect(callsOf(record('RUNNING'))).toEqual([{ kind: 'observe' }]);
    const sick = answered({ kind: 'done' }, { conditions: [condition('Healthy', 'FALSE', 'Exited', 'exit code 3')] });
    expect(step(record('RUNNING'), sick, NOW, half)).toMatchObject({
      report: { phase: 'REFRESH_FAILED', error: { code: 'Exited', message: 'exit code 3' } },
      healthy: false,
    });
    expect(step(record('REFRESH_FAILED'), DONE, NOW, half)).toMatchObject({ report: { phase: 'RUNNING' }, healthy: true });
  });

  it('takes not being able to look for no news', () => {
    expect(step(record('RUNNING'), THREW, NOW, half)).toMatchObject({
      report: { conditions: [{ type: 'Observed', status: 'FALSE' }] },
      healthy: false,
    });
    expect(step(record('RUNNING'), THREW, NOW, half).report.phase).toBeUndefined();
  });

  it('waits under a name of its own while no agent can take the work', () => {
    const nobody = answered({ kind: 'blocked', reason: 'NoReadyAgent', message: 'Nobody is ready.' });
    expect(step(record('PROVISIONING'), nobody, NOW, half).report.phase).toBe('WAITING_FOR_AGENTS');
    expect(step(record('WAITING_FOR_AGENTS'), DONE, NOW, half).report.phase).toBe('PROVISIONING');
    expect(step(record('WAITING_FOR_AGENTS', {}, true), DONE, NOW, half).report.phase).toBe('UPDATING');
  });
});
