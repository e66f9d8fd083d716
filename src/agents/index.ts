export {
  agentCommands,
  agentSweep,
  type AgentCommands,
  type AgentDeps,
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
export { agentFilterSchema, type AgentFilter, type AgentFilterField, type AgentPredicate } from './filter.js';
export { agentWhere } from './reads.js';
