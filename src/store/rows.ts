import type { Agent, Deployment, Release, Rollout, Runtime, Token } from './generated/prisma/client.js';

/** Columns of public tables that say who wrote the last version; in change rows, never on the objects. */
type Bookkeeping = 'changedBy' | 'changeReason' | 'changeMessage' | 'traceId' | 'changeToken';

export type RuntimeRow = Omit<Runtime, Bookkeeping>;
export type ReleaseRow = Omit<Release, Bookkeeping | 'version'>;
export type DeploymentRow = Omit<Deployment, Bookkeeping | 'exceptional'>;
export type AgentRow = Omit<Agent, Bookkeeping>;
export type TokenRow = Omit<Token, Bookkeeping>;
export type RolloutRow = Omit<Rollout, Bookkeeping>;

export interface Rows {
  readonly runtime: RuntimeRow;
  readonly release: ReleaseRow;
  readonly deployment: DeploymentRow;
  readonly agent: AgentRow;
  readonly token: TokenRow;
  readonly rollout: RolloutRow;
}
export type VersionedTable = keyof Rows;
