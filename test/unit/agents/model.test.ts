import { describe, expect, it } from 'vitest';

import {
  agentNameSchema,
  healthAt,
  protocolRefusal,
  registrationChanges,
  registrationSchema,
  topicSchema,
} from '../../../src/agents/model.js';

describe('names and topics of agents', () => {
  it.each(['a', 'edge-1', 'Rack_7', 'x'.repeat(239)])('take %j', (text) => {
    expect(agentNameSchema.safeParse(text).success).toBe(true);
    expect(topicSchema.safeParse(text).success).toBe(true);
  });

  it.each(['', 'a.b', '*', 'a*', '>', 'a b', '-a', 'a-', 'a\n', 'é', 'a/b', 'x'.repeat(240)])(
    'refuse %j',
    (text) => {
      expect(agentNameSchema.safeParse(text).success).toBe(false);
      expect(topicSchema.safeParse(text).success).toBe(false);
    },
  );

  it.each(['cancel', 'edge-cancel', 'edge_reports', 'edge-DEAD'])('refuse the reserved topic %j', (text) => {
    expect(topicSchema.safeParse(text).success).toBe(false);
  });
});

describe('healthAt', () => {
  it('calls an agent congested at its threshold and above', () => {
    expect([0, 99, 100, 101].map((lag) => healthAt(lag, 100))).toEqual([
      'READY',
      'READY',
      'CONGESTED',
      'CONGESTED',
    ]);
  });
});

describe('registrationChanges', () => {
  const parse = (input: object) =>
    registrationSchema.parse({ name: 'a', serviceTypes: [], protocolVersion: 1, ...input });
  const ready = {
    ...parse({ serviceTypes: ['b', 'a'], labels: { x: '1', y: '2' } }),
    health: 'READY' as const,
  };

  it('finds none in the same content, in whatever order it comes', () => {
    const same = parse({
      serviceTypes: ['a', 'b', 'a'],
      labels: { y: '2', x: '1' },
      topic: 'a',
      cost: 'MEDIUM',
    });
    expect(registrationChanges(ready, same)).toBeUndefined();
  });

  it('names each field that differs, and only those', () => {
    expect(registrationChanges(ready, parse({ labels: { x: '1', y: '2' }, cost: 'LOW' }))).toEqual({
      serviceTypes: [],
      cost: 'LOW',
    });
  });

  it('makes an agent ready again', () => {
    const { health: _, ...content } = ready;
    expect(registrationChanges({ ...content, health: 'UNAVAILABLE' }, content)).toEqual({ health: 'READY' });
  });
});

describe('protocolRefusal', () => {
  it('refuses what is below and above, and says which side to upgrade', () => {
    expect(protocolRefusal(1)).toBeUndefined();
    expect(protocolRefusal(0)).toMatch(/upgrade the agent/);
    expect(protocolRefusal(2)).toMatch(/upgrade the server/);
  });
});
