import {
  DeregisterAgentDocument,
  HeartbeatAgentDocument,
  RegisterAgentDocument,
  type SlipwayClient,
} from '../../client/index.js';
import { refusal } from './controller.js';

/** An agent that registers and beats, and carries out nothing. */
export interface DemoAgent {
  readonly id: string;
  /** One beat now; `consumerLag` is how many commands wait at the agent. */
  beat(consumerLag: number): Promise<void>;
  /** Beats by itself until `silence`; `failed` hears what went wrong. */
  beatRegularly(failed: (error: unknown) => void): void;
  silence(): void;
  deregister(): Promise<void>;
}

export async function registerAgent(client: SlipwayClient, name: string): Promise<DemoAgent> {
  const input = {
    name,
    serviceTypes: ['process'],
    environment: 'demo',
    labels: { purpose: 'demo' },
    protocolVersion: 1,
  };
  const { registerAgent: result } = await client.mutate(RegisterAgentDocument, { input });
  if (result.__typename !== 'RegisterAgentPayload') throw refusal('registerAgent', result);
  const { agent, session, heartbeatIntervalSeconds } = result;
  let sequence = 0;
  let timer: NodeJS.Timeout | undefined;

  async function beat(consumerLag: number): Promise<void> {
    sequence += 1;
    const { heartbeatAgent } = await client.mutate(HeartbeatAgentDocument, {
      input: { id: agent.id, session, sequence, consumerLag },
    });
    if (heartbeatAgent.__typename !== 'HeartbeatAgentPayload') {
      throw refusal('heartbeatAgent', heartbeatAgent);
    }
  }

  return {
    id: agent.id,
    beat,
    beatRegularly(failed) {
      timer = setInterval(() => void beat(0).catch(failed), heartbeatIntervalSeconds * 1_000);
    },
    silence: () => clearInterval(timer),
    async deregister() {
      clearInterval(timer);
      const { deregisterAgent } = await client.mutate(DeregisterAgentDocument, { input: { id: agent.id } });
      if (
        deregisterAgent.__typename !== 'DeregisterAgentPayload' &&
        deregisterAgent.__typename !== 'NotFound'
      ) {
        throw refusal('deregisterAgent', deregisterAgent);
      }
    },
  };
}
