import { execute, parse, type OperationDefinitionNode } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createBuilder } from '../../../src/graph/builder.js';
import { compileOperation } from '../../../src/graph/execution/executor.js';
import type { StreamDefinition } from '../../../src/graph/stream-field.js';
import { nextOf } from '../../../src/kernel/tap.js';
import { PUBLIC_COLUMNS } from '../../../src/store/public-types.js';
import { startTestGraph, type TestGraph } from '../../support/graph.js';
import { advanceDeployment, seedDeployment, seedRelease } from '../../support/seed.js';

let graph: TestGraph;
beforeAll(async () => {
  graph = await startTestGraph();
});
afterAll(() => graph.close());

const SUBSCRIPTION = `subscription {
  deploymentPhaseChanged {
    cursor from to version
    deployment { ...Name ... on Node { id } status { phase summary } }
    deployment { version }
  }
}
fragment Name on Deployment { name version ... on Deployment { labels } }`;

describe('an object that an event holds', () => {
  it('is shown at the version of the event, three versions later, without a statement', async () => {
    let row = await seedDeployment(graph.database, { labels: { team: 'web' } });
    const field = graph.schema.getSubscriptionType()?.getFields()['deploymentPhaseChanged'];
    const definition = field?.extensions['stream'] as StreamDefinition; // every subscription field carries one
    const source = definition.open({ after: await graph.feed.head() }, graph.contextOf());
    row = await advanceDeployment(graph.database, row, { phase: 'INITIAL_SETUP' });
    const event = await nextOf(source);
    if (!event) throw new Error('the stream ended');
    for (const phase of ['PROVISIONING', 'RUNNING', 'UPDATE_PENDING'] as const) {
      row = await advanceDeployment(graph.database, row, { phase, labels: {} });
    }
    let result: unknown;
    const statements = await graph.readStatements(async () => {
      const document = parse(SUBSCRIPTION);
      const [operation] = document.definitions as [OperationDefinitionNode]; // the fragment comes behind it
      result = await compileOperation(graph.schema, document, operation).execute({
        variables: {},
        context: graph.contextOf(),
        rootValue: { deploymentPhaseChanged: event.value },
      });
    });
    source.close();
    expect(statements).toEqual([]);
    expect(result).toMatchObject({
      data: {
        deploymentPhaseChanged: {
          from: 'PENDING',
          to: 'INITIAL_SETUP',
          version: 2,
          deployment: { id: row.id, version: 2, labels: { team: 'web' }, status: { phase: 'INITIAL_SETUP' } },
        },
      },
    });
  });

  it('reads each selected relation with one statement', async () => {
    const release = await seedRelease(graph.database);
    const first = await seedDeployment(graph.database, { targetReleaseId: release.id });
    const stream = await graph.stream(
      `subscription ($after: ChangeCursor) { deploymentPhaseChanged(after: $after) { deployment { version runtime { name } targetRelease { label } } } }`,
      { after: await graph.feed.head() },
    );
    const pending = stream.next();
    let answer: unknown;
    await advanceDeployment(graph.database, first, { phase: 'INITIAL_SETUP' });
    const statements = await graph.readStatements(async () => {
      answer = await pending;
    });
    await stream.close();
    expect(answer).toMatchObject({
      data: { deploymentPhaseChanged: { deployment: { version: 2, runtime: {}, targetRelease: {} } } },
    });
    expect(statements.filter((text) => /FROM (runtime|release) /.test(text))).toHaveLength(2);
    expect(statements).toHaveLength(2);
  });
});

describe('a field of the Prisma field builder', () => {
  it('reads the object again, at whatever version it is by then: the reason for builder.objectFields', async () => {
    const held = await seedDeployment(graph.database);
    await advanceDeployment(graph.database, held, { phase: 'INITIAL_SETUP' });
    const builder = createBuilder(graph.deps);
    const type = builder.prismaObject('Deployment', {
      select: PUBLIC_COLUMNS.Deployment,
      fields: (t) => ({ again: t.exposeInt('version') }),
    });
    builder.objectField(type, 'held', (t) => t.exposeInt('version'));
    builder.queryField('event', (t) => t.field({ type, resolve: () => held }));
    builder.mutationField('none', (t) => t.boolean({ resolve: () => true }));
    builder.subscriptionField('none', (t) => t.boolean({ subscribe: () => never(), resolve: () => true }));
    const result = await execute({
      schema: builder.toSchema(),
      document: parse('{ event { held again } }'),
      contextValue: graph.contextOf(),
    });
    expect(result.data).toMatchObject({ event: { held: 1, again: 2 } });
  });
});

async function* never(): AsyncGenerator<boolean> {}

describe('deployments', () => {
  it('reads a page with its relations in one statement', async () => {
    await seedDeployment(graph.database);
    let answer;
    const statements = await graph.readStatements(async () => {
      answer = await graph.run(`{ deployments(first: 10) { nodes { id name runtime { name } } } }`);
    });
    expect(answer).toMatchObject({ errors: [] });
    expect(statements).toHaveLength(1);
  });
});
