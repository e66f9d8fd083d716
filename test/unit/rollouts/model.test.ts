import { describe, expect, it } from 'vitest';

import {
  activate,
  cancel,
  fail,
  ROLLOUT_OPERATION_NAMES,
  ROLLOUT_OUTCOME_NAMES,
  ROLLOUT_OUTCOMES,
  ROLLOUT_PHASE_NAMES,
  rolloutPhaseSchema,
  setPhase,
  settled,
  type RolloutDecision,
  type RolloutOutcome,
  type RolloutState,
  type Settlement,
} from '../../../src/rollouts/model.js';

const NOW = new Date('2026-01-01T00:00:00Z');
const BEFORE = new Date('2025-12-31T00:00:00Z');
const BUILDING: RolloutState = {
  operation: 'UPDATE',
  phase: 'BUILDING',
  activatedAt: null,
  cancelRequestedAt: null,
  outcome: null,
  finishedAt: null,
  message: 'as it began',
  error: null,
};
const ACTIVE: RolloutState = { ...BUILDING, phase: 'ACTIVATING', activatedAt: BEFORE };
const CALLED_OFF: RolloutState = { ...ACTIVE, cancelRequestedAt: BEFORE, message: 'by operator' };
const ended = (outcome: RolloutOutcome): RolloutState => ({ ...ACTIVE, outcome, finishedAt: BEFORE });

const ACTIONS: Readonly<Record<string, (state: RolloutState) => RolloutDecision>> = {
  'another phase': (state) => setPhase(state, 'PUSHING'),
  activation: (state) => activate(state, 'rel_1', NOW),
  failure: (state) => fail(state, { code: 'BuildFailed', message: 'no' }, NOW),
  cancelling: (state) => cancel(state, 'by operator', NOW),
};
/** What each makes of each state: an outcome, `goes on`, `unchanged`, or `refused`. */
const TABLE: Readonly<Record<string, readonly [RolloutState, Readonly<Record<string, string>>]>> = {
  building: [
    BUILDING,
    { 'another phase': 'goes on', activation: 'goes on', failure: 'FAILED', cancelling: 'CANCELLED' },
  ],
  active: [
    ACTIVE,
    { 'another phase': 'refused', activation: 'refused', failure: 'refused', cancelling: 'goes on' },
  ],
  'called off': [
    CALLED_OFF,
    { 'another phase': 'refused', activation: 'refused', failure: 'refused', cancelling: 'unchanged' },
  ],
  SUCCEEDED: [
    ended('SUCCEEDED'),
    { 'another phase': 'refused', activation: 'refused', failure: 'refused', cancelling: 'refused' },
  ],
  FAILED: [
    ended('FAILED'),
    { 'another phase': 'refused', activation: 'refused', failure: 'unchanged', cancelling: 'refused' },
  ],
  CANCELLED: [
    ended('CANCELLED'),
    { 'another phase': 'refused', activation: 'refused', failure: 'unchanged', cancelling: 'unchanged' },
  ],
  INTERRUPTED: [
    ended('INTERRUPTED'),
    { 'another phase': 'refused', activation: 'refused', failure: 'refused', cancelling: 'refused' },
  ],
};
const cells = Object.entries(TABLE).flatMap(([name, [state, row]]) =>
  Object.entries(row).map(([action, expected]) => ({ name, state, action, expected })),
);
const what = (decision: RolloutDecision): string =>
  decision.kind === 'applied' ? (decision.change.outcome ?? 'goes on') : decision.kind;

describe('a rollout', () => {
  it('has a cell for every outcome', () => {
    expect(Object.keys(TABLE).slice(3)).toEqual(ROLLOUT_OUTCOME_NAMES);
  });

  it.each(cells)('that is $name makes of $action: $expected', ({ state, action, expected }) => {
    const decision = ACTIONS[action]?.(state);
    expect(decision && what(decision)).toBe(expected);
    if (decision?.kind === 'refused') expect(decision.failure.kind).toBe('InvalidTransition');
  });

  it('is not made active by a phase, and no phase is made up', () => {
    expect(setPhase(BUILDING, 'ACTIVATING')).toMatchObject({
      kind: 'refused',
      failure: { kind: 'InvalidInput' },
    });
    expect(rolloutPhaseSchema.safeParse('DREAMING').success).toBe(false);
    expect(rolloutPhaseSchema.options).toEqual(ROLLOUT_PHASE_NAMES);
  });

  it.each(['UNDEPLOY', 'DELETE'] as const)('that is to %s can not be called off', (operation) => {
    expect(cancel({ ...ACTIVE, operation }, null, NOW).kind).toBe('refused');
    expect(ROLLOUT_OPERATION_NAMES).toContain(operation);
  });
});

describe('what ends a rollout from outside', () => {
  const error = { code: 'Crashed', message: 'exit 1' };
  const settlements: readonly (readonly [Settlement, RolloutOutcome])[] = [
    [{ kind: 'reached' }, 'SUCCEEDED'],
    [{ kind: 'failed', error }, 'FAILED'],
    [{ kind: 'cancelled', message: 'deleted' }, 'CANCELLED'],
    [{ kind: 'interrupted', message: 'silence' }, 'INTERRUPTED'],
  ];

  it.each(settlements)('gives $kind its outcome', (settlement, outcome) => {
    expect(settled(ACTIVE, settlement, NOW)).toMatchObject({
      kind: 'applied',
      change: { outcome, finishedAt: NOW },
    });
  });

  it.each(settlements)('lets the wish to cancel win over $kind, and keeps its reason', (settlement) => {
    expect(settled(CALLED_OFF, settlement, NOW)).toEqual({
      kind: 'applied',
      change: { outcome: 'CANCELLED', finishedAt: NOW },
      reason: 'RolloutCancelled',
    });
  });

  it.each(ROLLOUT_OUTCOME_NAMES)('never changes %s', (outcome) => {
    for (const [settlement] of settlements) {
      expect(settled(ended(outcome), settlement, NOW).kind).toBe('unchanged');
    }
  });

  it('is the only way to an outcome that clients may not give', () => {
    const given = cells.map(({ state, action }) => ACTIONS[action]?.(state)).map((one) => one && what(one));
    for (const [outcome, { by }] of Object.entries(ROLLOUT_OUTCOMES)) {
      expect(given.includes(outcome), outcome).toBe(by === 'clients');
    }
  });
});
