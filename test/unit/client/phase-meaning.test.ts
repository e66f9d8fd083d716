import { describe, expect, it } from 'vitest';
import { meaningFor, PHASE_MEANINGS, type DeploymentGoal } from '../../../src/client/phase-meaning.js';
import { LIFECYCLE, type DeploymentPhase } from '../../../src/deployments/lifecycle.js';

const GOALS: readonly DeploymentGoal[] = ['RUNNING', 'UNDEPLOYED', 'DELETED'];
const phases = Object.keys(LIFECYCLE) as DeploymentPhase[]; // keys of the table

describe('what a phase means to whoever waits', () => {
  it.each(phases)('agrees with the lifecycle about %s', (phase) => {
    const rule = LIFECYCLE[phase];
    const meanings = GOALS.map((goal) => PHASE_MEANINGS[phase][goal]);
    // A wait for what never moves by itself would only end by its timeout.
    expect(meanings.includes('working')).toBe(!rule.settled && !rule.terminal);
    if (rule.failed) expect(meanings).toContain('failed');
    if (phase === 'RUNNING' || phase === 'UNDEPLOYED' || phase === 'DELETED') {
      expect(PHASE_MEANINGS[phase][phase]).toBe('reached');
    } else expect(meanings).not.toContain('reached');
  });

  it('does not take an older specification that runs for the one that is wanted', () => {
    const deployment = { generation: 2, status: { phase: 'RUNNING', observedGeneration: 1 } } as const;
    expect(meaningFor('RUNNING', deployment)).toBe('working');
    expect(meaningFor('RUNNING', { ...deployment, generation: 1 })).toBe('reached');
  });
});
