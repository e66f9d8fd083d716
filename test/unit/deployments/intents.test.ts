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
  blockedBy,
  canCancel,
  canDelete,
  canRetry,
  canRollback,
  summarise,
  type DeploymentState,
} from '../../../src/deployments/model.js';
import { AT, LATER, stateIn } from '../../support/deployment-state.js';

const ERROR = { code: 'Crashed', message: 'exit 1', retryable: true };
const running: DeploymentState = stateIn('RUNNING', {
  currentReleaseId: 'rel_1',
  targetReleaseId: null,
  generation: 4,
});

function change(decision: IntentDecision) {
  if (decision.kind !== 'applied') throw new Error(`not applied: ${JSON.stringify(decision)}`);
  return decision.change;
}

describe('applySpec', () => {
  it('is one more generation exactly when release, env, runtime config or desired state change', () => {
    const wanted = { releaseId: 'rel_1' };
    expect(applySpec(running, wanted)).toEqual({ kind: 'unchanged' });
    for (const spec of [
      { releaseId: 'rel_2' },
      { env: [{ name: 'A', value: '1' }] },
      { runtimeConfig: { a: 1 } },
    ]) {
      expect(change(applySpec(running, { ...wanted, ...spec }))).toMatchObject({
        generation: 5,
        phase: 'UPDATE_PENDING',
      });
    }
    const undeployed = stateIn('UNDEPLOYED', { targetReleaseId: 'rel_1', generation: 4 });
    expect(change(applySpec(undeployed, wanted))).toMatchObject({
      generation: 5,
      desiredState: 'DEPLOYED',
      phase: 'PENDING',
      targetReleaseId: 'rel_1',
    });
  });

  it('is none for labels alone, and changes nothing but them', () => {
    expect(applySpec(running, { releaseId: 'rel_1', labels: { a: 'b' } })).toEqual({
      kind: 'applied',
      reason: 'LabelsChanged',
      change: { labels: { a: 'b' } },
    });
  });

  it('is none for the same content in another order', () => {
    const state = { ...running, runtimeConfig: { a: 1, b: { c: 2, d: 3 } } };
    expect(applySpec(state, { releaseId: 'rel_1', runtimeConfig: { b: { d: 3, c: 2 }, a: 1 } }).kind).toBe(
      'unchanged',
    );
  });

  it('compares with the release it is moving to, else with the one that serves', () => {
    const updating = stateIn('UPDATING', { currentReleaseId: 'rel_1', targetReleaseId: 'rel_2' });
    expect(applySpec(updating, { releaseId: 'rel_2' }).kind).toBe('unchanged');
    expect(change(applySpec(updating, { releaseId: 'rel_1' }))).toMatchObject({
      targetReleaseId: 'rel_1',
      phase: 'UPDATE_PENDING',
    });
  });

  it('answers what failed before it', () => {
    const failed = stateIn('UPDATE_FAILED', { error: ERROR, retryRequested: true });
    expect(change(applySpec(failed, { releaseId: 'rel_9' }))).toMatchObject({
      error: null,
      retryRequested: false,
    });
  });
});

describe('applyLabels', () => {
  it('changes labels and nothing else, also of what is down or going down', () => {
    for (const phase of ['UNDEPLOYING', 'UNDEPLOY_FAILED', 'UNDEPLOYED', 'ERROR'] as const) {
      const state = stateIn(phase, { error: phase === 'UNDEPLOY_FAILED' ? ERROR : null });
      expect(applyLabels(state, { a: 'b' })).toEqual({
        kind: 'applied',
        reason: 'LabelsChanged',
        change: { labels: { a: 'b' } },
      });
    }
  });

  it('writes nothing for equal labels, or for none named', () => {
    const labelled = stateIn('UNDEPLOYED', { labels: { a: 'b', c: 'd' } });
    expect(applyLabels(labelled, { c: 'd', a: 'b' })).toEqual({ kind: 'unchanged' });
    expect(applyLabels(labelled, undefined)).toEqual({ kind: 'unchanged' });
  });
});

describe('undeploy', () => {
  it('is a change of the spec, and keeps what serves until it is down', () => {
    expect(change(undeploy(running))).toEqual({
      desiredState: 'UNDEPLOYED',
      generation: 5,
      phase: 'UNDEPLOYING',
      error: null,
      retryRequested: false,
    });
  });

  it('is done at once where nothing ran', () => {
    expect(change(undeploy(stateIn('PENDING')))).toMatchObject({
      phase: 'UNDEPLOYED',
      targetReleaseId: 'rel_target',
    });
  });
});

describe('retry', () => {
  it('asks for the same again: no generation, the error gone, the request standing', () => {
    const moved = change(retry(stateIn('PROVISIONING_FAILED', { error: ERROR })));
    expect(moved).toMatchObject({ phase: 'PROVISIONING', error: null, retryRequested: true });
    expect(moved).not.toHaveProperty('generation');
  });

  it('names what serves as the target when a failed health check is retried', () => {
    const sick = stateIn('REFRESH_FAILED', { currentReleaseId: 'rel_1', targetReleaseId: null });
    expect(change(retry(sick))).toMatchObject({ phase: 'UPDATE_PENDING', targetReleaseId: 'rel_1' });
  });

  it('says so when there is nothing to retry', () => {
    const decision = retry(running);
    expect(decision.kind === 'refused' && decision.failure.message).toMatch(/RUNNING.*nothing to retry/);
  });
});

describe('deleting', () => {
  it('marks once', () => {
    expect(change(requestDelete(running, LATER))).toMatchObject({
      phase: 'DELETE_PENDING',
      deletionRequestedAt: LATER,
    });
    expect(requestDelete(stateIn('DELETE_FAILED'), LATER)).toEqual({ kind: 'unchanged' });
  });

  it('drops the record from anywhere, and says how in the log', () => {
    const dropped = dropRecord(stateIn('DELETE_FAILED', { deletionRequestedAt: AT }), 'Forgotten', LATER);
    expect(dropped).toMatchObject({ reason: 'Forgotten' });
    expect(change(dropped)).toMatchObject({ phase: 'DELETED', deletedAt: LATER, deletionRequestedAt: AT });
  });
});

describe('what the state says of itself', () => {
  it('summarises: the error, else a false condition, else what is going on', () => {
    const broken = {
      type: 'Ready',
      status: 'FALSE' as const,
      reason: 'PortTaken',
      message: 'port 80\nis taken',
      lastTransitionAt: AT.toISOString(),
      observedGeneration: 1,
    };
    const state = stateIn('UPDATE_FAILED', { error: ERROR, conditions: [broken] });
    expect(summarise(state)).toBe('Crashed: exit 1.');
    expect(summarise({ ...state, error: null })).toBe('Ready is false (PortTaken): port 80 is taken.');
    expect(summarise(running)).toBe('Running.');
    expect(
      summarise({ ...state, error: { ...ERROR, message: 'x'.repeat(4096) } }).length,
    ).toBeLessThanOrEqual(512);
  });

  it('tells what may be done now', () => {
    const deleting = stateIn('DELETE_FAILED');
    expect([canRetry(running, null), canDelete(running), blockedBy(running, null)]).toEqual([
      false,
      true,
      null,
    ]);
    expect([canRetry(deleting, null), canDelete(deleting), blockedBy(deleting, null)]).toEqual([
      true,
      false,
      'It is being deleted.',
    ]);
    expect(blockedBy(stateIn('UNDEPLOYING'), null)).toBe('It is UNDEPLOYING: Taking down what runs.');
  });

  it('tells that a rollout is in the way', () => {
    const lock = { rolloutId: 'ro_1', startedBy: 'token:ci' };
    expect(blockedBy(running, lock)).toBe('The rollout ro_1, started by token:ci, is under way.');
    expect(canRetry(stateIn('UPDATE_FAILED'), lock)).toBe(false);
    expect(canDelete(running)).toBe(true);
    expect(canRollback(running, null, 'rel_0')).toBe(true);
    expect(canRollback(running, lock, 'rel_0')).toBe(false);
    expect(canRollback(running, null, null)).toBe(false);
    expect(canRollback(stateIn('DELETING'), null, 'rel_0')).toBe(false);
  });

  it.each([
    ['nothing is under way', 'UPDATING', 'rel_1', null, false],
    ['it only builds', 'RUNNING', 'rel_1', { active: false, cancelRequested: false }, true],
    ['it is on its way', 'UPDATING', 'rel_1', { active: true, cancelRequested: false }, true],
    ['it is called off already', 'UPDATING', 'rel_1', { active: true, cancelRequested: true }, false],
    ['nothing ran before', 'PROVISIONING', null, { active: true, cancelRequested: false }, true],
    [
      'nothing ran before, and it goes down',
      'UNDEPLOYING',
      null,
      { active: true, cancelRequested: false },
      false,
    ],
    ['it is there', 'RUNNING', 'rel_1', { active: true, cancelRequested: false }, false],
  ] as const)(
    'tells whether there is anything to call off where %s',
    (_where, phase, currentReleaseId, unfinished, can) => {
      expect(canCancel(stateIn(phase, { currentReleaseId }), unfinished)).toBe(can);
    },
  );
});
