import { describe, expect, it } from 'vitest';

import { commandOf, PAST_BUGS } from '../../live/faults/past-bugs.js';
import { SCENARIOS } from '../../live/faults/scenarios.js';

describe('the registry of past bugs', () => {
  it.each(PAST_BUGS.map((bug) => [bug.was, bug] as const))('%s', (_was, bug) => {
    expect(Object.keys(SCENARIOS)).toContain(bug.scenario);
    expect(commandOf(bug)).toBe(`npm run soak -- ${bug.scenario} --small --seed ${bug.seed}`);
  });
});
