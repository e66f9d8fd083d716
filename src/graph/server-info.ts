import type { Graph } from './graph.js';

/** What the server says of itself; composed by whoever starts it. */
export interface ServerFacts {
  readonly version: string;
  /** Whether operations need a token. */
  readonly accessControl: boolean;
  readonly runtimeTypes: readonly string[];
  /** How often a registered agent is told to beat, and after which silence it is UNAVAILABLE. */
  readonly heartbeatIntervalSeconds: number;
  readonly heartbeatTimeoutSeconds: number;
  readonly agentProtocol: { readonly minimum: number; readonly current: number };
}

export function addServerInfo(
  { builder, clock }: Pick<Graph, 'builder' | 'clock'>,
  facts: ServerFacts,
): void {
  const range = builder.objectRef<ServerFacts['agentProtocol']>('ProtocolRange').implement({
    description: 'Versions of a protocol that this server speaks.',
    fields: (t) => ({
      minimum: t.exposeInt('minimum', { description: 'The lowest.' }),
      current: t.exposeInt('current', { description: 'The highest.' }),
    }),
  });
  const info = builder.objectRef<ServerFacts>('ServerInfo').implement({
    description: 'What this server is.',
    fields: (t) => ({
      version: t.exposeString('version', { description: 'The version of Slipway.' }),
      time: t.field({
        type: 'DateTime',
        description: 'The time by the clock of the server that answers.',
        resolve: () => clock.now(),
      }),
      accessControl: t.exposeBoolean('accessControl', { description: 'Whether operations need a token.' }),
      runtimeTypes: t.field({
        type: ['String'],
        description: 'The types of runtimes that it knows.',
        resolve: (one) => [...one.runtimeTypes],
      }),
      heartbeatIntervalSeconds: t.exposeFloat('heartbeatIntervalSeconds', {
        description: 'How often an agent is told to send a heartbeat, in seconds.',
      }),
      heartbeatTimeoutSeconds: t.exposeFloat('heartbeatTimeoutSeconds', {
        description: 'After how many seconds without a heartbeat an agent is UNAVAILABLE.',
      }),
      agentProtocol: t.field({
        type: range,
        description: 'What it speaks with agents.',
        resolve: (one) => one.agentProtocol,
      }),
    }),
  });
  builder.queryField('serverInfo', (t) =>
    t.field({ type: info, description: 'What this server is and can do.', resolve: () => facts }),
  );
}
