import { describe, expect, it } from 'vitest';
import { documentFacts } from '../../../src/client/document.js';

describe('documentFacts', () => {
  it('reads the operation, its root field and whether it takes a cursor', () => {
    const text = `
      fragment Parts on Deployment { id }
      # subscription in a comment { nothing }
      subscription Watch($filter: DeploymentFilter = { name: { equals: "{ $after" } }, $after: ChangeCursor) {
        events: watchDeployments(filter: $filter, after: $after) { __typename cursor }
      }`;
    expect(documentFacts(text)).toEqual({
      text,
      operation: 'subscription',
      operationName: 'Watch',
      rootKey: 'events',
      rootField: 'watchDeployments',
      takesAfter: true,
    });
  });

  it('tells a document that cannot be resumed', () => {
    expect(documentFacts('subscription { tick(note: "$after") { cursor } }')).toMatchObject({
      rootField: 'tick',
      takesAfter: false,
    });
  });

  it('takes a query without a keyword', () => {
    expect(documentFacts('{ head }')).toMatchObject({ operation: 'query', rootKey: 'head' });
  });

  it('refuses what has no operation', () => {
    expect(() => documentFacts('nothing')).toThrow(TypeError);
  });
});
