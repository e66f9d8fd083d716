import { describe, expect, it } from 'vitest';

import type { Action } from '../../../src/access/actions.js';
import { ROLES } from '../../../src/access/actor.js';
import { authorise, mayEver, systemGrant } from '../../../src/access/authorise.js';
import { someone } from '../../support/callers.js';
import { AUTHORISATION_CASES, type AuthorisationCase } from './authz.cases.js';

const cases = Object.entries(AUTHORISATION_CASES) as [Action, AuthorisationCase][]; // its own entries

describe.each(cases)('%s', (action, { may, mayNot, within }) => {
  it('has each role on one side', () => {
    expect([...may, ...mayNot].sort()).toEqual([...ROLES].sort());
  });

  it.each(may)('is for %s', (role) => {
    const caller = someone({ roles: [role], namespaces: ['team-a', 'team-b'], agentName: 'edge-*' });
    expect(mayEver(caller.actor, action)).toBe(true);
    expect(authorise(caller, action)).toMatchObject({ action, actor: { roles: new Set([role]) } });
  });

  it.each([...mayNot, undefined])('is not for %s', (role) => {
    const caller = someone({ roles: role === undefined ? [] : [role], agentName: 'edge-*' });
    expect(mayEver(caller.actor, action)).toBe(false);
    for (const scope of [{}, { namespace: 'team-a' }, { agentName: 'edge-1' }]) {
      expect(authorise(caller, action, scope)).toBeUndefined();
    }
  });

  it('is limited as it should be', () => {
    for (const role of may) {
      const caller = someone({ roles: [role], namespaces: ['team-a', 'team-b'], agentName: 'edge-*' });
      const own = authorise(caller, action, { namespace: 'team-a', agentName: 'edge-1' });
      const others = authorise(caller, action, { namespace: 'team-c', agentName: 'core-1' });
      if (within === 'namespaces') {
        expect(authorise(caller, action)?.namespaces).toEqual(new Set(['team-a', 'team-b']));
        expect(own?.namespaces).toEqual(new Set(['team-a']));
        expect(others).toBeUndefined();
      } else if (within === 'agent name' && role === 'AGENT') {
        expect(authorise(caller, action)?.agentName).toBe('edge-*');
        expect(own).toMatchObject({ agentName: 'edge-1', namespaces: 'all' });
        expect(others).toBeUndefined();
      } else {
        expect(others).toMatchObject({ namespaces: 'all', agentName: null });
      }
    }
  });
});

describe('authorise', () => {
  it('reaches every namespace by a token for all of them', () => {
    const caller = someone({ roles: ['VIEWER'] });
    expect(authorise(caller, 'deployment:read')?.namespaces).toBe('all');
    expect(authorise(caller, 'deployment:read', { namespace: 'any' })?.namespaces).toEqual(new Set(['any']));
  });

  it('does not narrow an agent that holds a further allowed role', () => {
    const caller = someone({ roles: ['AGENT', 'OPERATOR'], agentName: 'edge-1' });
    expect(authorise(caller, 'agent:deregister', { agentName: 'core-1' })).toMatchObject({ agentName: null });
    expect(authorise(caller, 'agent:register', { agentName: 'core-1' })).toBeUndefined();
  });

  it('gives an agent without a name nothing', () => {
    const caller = someone({ roles: ['AGENT'] });
    expect(authorise(caller, 'agent:beat')).toBeUndefined();
    expect(authorise(caller, 'agent:register', { agentName: 'edge-1' })).toBeUndefined();
  });

  it.each([
    ['edge-1', 'edge-1', true],
    ['edge-1', 'edge-11', false],
    ['edge-1', 'Edge-1', false],
    ['edge-*', 'edge-', true],
    ['edge-*', 'edge-1', true],
    ['edge-*', 'edge', false],
    // The name of an agent can hold no star; a token's may be taken for nothing but itself.
    ['edge-1', 'edge-*', false],
  ])('takes a token for %j to speak for %j: %s', (agentName, name, expected) => {
    const caller = someone({ roles: ['AGENT'], agentName });
    expect(authorise(caller, 'agent:register', { agentName: name }) !== undefined).toBe(expected);
  });

  it('carries the trace of the request, and the part for what the server does itself', () => {
    const caller = { ...someone({ roles: ['VIEWER'] }), traceId: 'trace' };
    expect(authorise(caller, 'agent:read')).toMatchObject({ traceId: 'trace', actor: { id: 'test:VIEWER' } });
    expect(systemGrant('system:sweep', 'agents')).toMatchObject({
      namespaces: 'all',
      traceId: null,
      actor: { id: 'system:agents', roles: new Set() },
    });
  });
});
