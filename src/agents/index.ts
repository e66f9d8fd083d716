export { agentCommands, agentSweep, type AgentCommands, type Registered } from './commands.js';
export { AGENT_PROTOCOL } from './model.js';
