import { describe, expect, it } from 'vitest';

import { tokenStates } from '../../../src/access/token-states.js';
import { newId } from '../../../src/kernel/ids.js';
import type { TokenRow } from '../../../src/store/rows.js';
import { ManualClock } from '../../support/manual-clock.js';

const id = newId('TOKEN');
const now = new ManualClock().now();
const token = (version: number, more: Partial<TokenRow> = {}): TokenRow => ({
  id,
  name: 'x',
  roles: ['VIEWER'],
  namespaces: ['*'],
  agentName: null,
  createdBy: 'local',
  expiresAt: null,
  revokedAt: null,
  version,
  createdAt: now,
  updatedAt: now,
  ...more,
});

describe('tokenStates', () => {
  it('never goes back, in whatever order it is told of the versions of a token', () => {
    const states = tokenStates();
    const reading = states.beginReading();
    const state = states.read(id, token(1), reading);
    reading.end();
    states.changed(id, token(3, { revokedAt: now }));
    states.changed(id, token(2, { roles: ['ADMIN'] }));
    const late = states.beginReading();
    expect(states.read(id, token(1), late)).toBe(state);
    late.end();
    expect(state).toMatchObject({ token: { version: 3, revokedAt: now, roles: ['VIEWER'] } });
  });

  it('keeps every actor of a token with its one state', () => {
    const states = tokenStates();
    const reading = states.beginReading();
    const state = states.read(id, token(1), reading);
    reading.end();
    const before = state.actor;
    states.changed(id, token(2, { roles: ['DEPLOYER'] }));
    expect(state.actor).not.toBe(before);
    expect(states.of(before)).toBe(state);
    expect(states.of(state.actor)).toBe(state);
    expect(states.of({ ...before })).toBeUndefined();
    expect(states.size).toBe(1);
  });

  it('takes what came during a reading over what was read, and nothing that came before or after it', () => {
    const states = tokenStates();
    states.changed(id, token(2, { revokedAt: now }));
    const reading = states.beginReading();
    expect(reading.sawChange).toBe(false);
    states.changed(id, 'gone');
    expect(reading.sawChange).toBe(true);
    expect(states.read(id, token(1), reading)).toMatchObject({ gone: true });
    reading.end();
    const other = states.beginReading();
    expect(other.sawChange).toBe(false);
    other.end();
  });
});
