import { describe, expect, it } from 'vitest';
import { paginate } from '../../../src/client/paginate.js';

const page = (nodes: number[], endCursor: string | null, hasNextPage: boolean, asOf?: string) => ({
  nodes,
  pageInfo: { endCursor, hasNextPage },
  asOf,
});

describe('paginate', () => {
  it('walks all pages and keeps the asOf of the first', async () => {
    const asked: (string | null)[] = [];
    const list = paginate(async (after) => {
      asked.push(after);
      return after === null ? page([1, 2], 'p1', true, 'c1') : page([3], 'p2', false, 'c2');
    });
    expect(list.asOf).toBeNull();
    const got: number[] = [];
    for await (const node of list) got.push(node);
    expect([got, asked, list.asOf]).toEqual([[1, 2, 3], [null, 'p1'], 'c1']);
  });

  it('asks for no page that nobody reads', async () => {
    let asked = 0;
    const list = paginate(async () => {
      asked += 1;
      return page([1, 2], `p${asked}`, true);
    });
    for await (const node of list) if (node === 2) break;
    expect(asked).toBe(1);
  });

  it('ends when the server does not move on', async () => {
    const list = paginate(async () => page([1], 'p1', true));
    const got: number[] = [];
    for await (const node of list) got.push(node);
    expect(got).toEqual([1, 1]);
  });
});
