import {
  AgentHealthChangedDocument,
  DeploymentPhaseChangedDocument,
  type AgentHealth,
  type DeploymentPhase,
  type SlipwayClient,
} from '../../client/index.js';
import type { Say } from './say.js';

/** What the live streams told, in order. */
export interface Observer {
  readonly phases: readonly DeploymentPhase[];
  readonly healths: readonly AgentHealth[];
  /** Resolves when the stream has told `phase` at least `times` times. */
  phase(phase: DeploymentPhase, withinMs: number, times?: number): Promise<void>;
  health(health: AgentHealth, withinMs: number, times?: number): Promise<void>;
  /** Resolves when both streams are open: what changes afterwards is told. */
  readonly opened: Promise<void>;
  /** Rejects when a stream failed for good. */
  readonly failed: Promise<never>;
  close(): void;
}

/** Subscribes to one deployment and one agent by name and prints each event as it comes. */
export function observe(
  client: SlipwayClient,
  names: { readonly deployment: string; readonly agent: string },
  say: Say,
): Observer {
  const controller = new AbortController();
  const { signal } = controller;
  const phases: DeploymentPhase[] = [];
  const healths: AgentHealth[] = [];
  const waiting = new Set<() => void>();
  const look = (): void => {
    for (const check of [...waiting]) check();
  };

  const deployments = client.subscribe(
    DeploymentPhaseChangedDocument,
    { filter: { name: { equals: names.deployment } } },
    { signal },
  );
  const agents = client.subscribe(
    AgentHealthChangedDocument,
    { filter: { name: { equals: names.agent } } },
    { signal },
  );

  async function followPhases(): Promise<void> {
    for await (const { deploymentPhaseChanged: event } of deployments) {
      phases.push(event.to);
      say.live(
        `${event.deployment.name}: ${event.from ?? '(new)'} → ${event.to}, version ${event.version}${event.reason === null ? '' : `, ${event.reason}`}`,
      );
      look();
    }
  }
  async function followHealth(): Promise<void> {
    for await (const { agentHealthChanged: event } of agents) {
      healths.push(event.to);
      say.live(
        `${event.agent.name}: ${event.from ?? '(new)'} → ${event.to}${event.consumerLag === null ? '' : `, ${event.consumerLag} commands waiting`}${event.reason === null ? '' : `, ${event.reason}`}`,
      );
      look();
    }
  }
  const failed = new Promise<never>((_resolve, reject) => {
    followPhases().catch(reject);
    followHealth().catch(reject);
  });
  // Looked at by whoever waits; nobody may be waiting at that moment.
  failed.catch(() => undefined);

  function until<T>(told: readonly T[], value: T, times: number, withinMs: number): Promise<void> {
    const arrived = new Promise<void>((resolve, reject) => {
      const check = (): void => {
        if (told.filter((one) => one === value).length < times) return;
        waiting.delete(check);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.delete(check);
        reject(new Error(`The stream did not tell ${String(value)} within ${withinMs / 1_000} s.`));
      }, withinMs);
      waiting.add(check);
      check();
    });
    return Promise.race([arrived, failed]);
  }

  return {
    phases,
    healths,
    phase: (phase, withinMs, times = 1) => until(phases, phase, times, withinMs),
    health: (health, withinMs, times = 1) => until(healths, health, times, withinMs),
    opened: Promise.all([deployments.opened, agents.opened]).then(() => undefined),
    failed,
    close: () => controller.abort(),
  };
}
