export {
  agentCommands,
  agentSweep,
  type AgentCommands,
  type AgentDeps,
  type AgentTarget,
  type Beaten,
  type Registered,
} from './commands.js';
export {
  AGENT_COSTS,
  AGENT_HEALTHS,
  AGENT_PROTOCOL,
  AGENT_REASONS,
  CONGESTION_THRESHOLD_DEFAULT,
  type AgentCost,
  type AgentHealth,
} from './model.js';
