/** What the server remembers of an agent and shows to nobody but, the session alone, the agent that registered. */
export interface AgentSession {
  /** New with each registration; a heartbeat must name it. */
  readonly session: string;
  /** Of the last heartbeat that was applied; 0 after a registration. */
  readonly sequence: bigint;
}
