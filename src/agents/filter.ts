import { filterSchema, type Filter, type Predicate } from '../kernel/filter.js';
import { AGENT_COSTS, AGENT_HEALTHS } from './model.js';

/** Filter fields of agents, by the names of the row. Those that can change stand in every change's `before`. */
export type AgentFilterField = 'name' | 'topic' | 'environment' | 'cost' | 'health';
export type AgentFilter = Filter<AgentFilterField>;
export type AgentPredicate = Predicate<AgentFilterField>;

export const agentFilterSchema = filterSchema<AgentFilterField>({
  labels: true,
  fields: {
    name: { kind: 'text' },
    topic: { kind: 'text' },
    environment: { kind: 'text' },
    cost: { kind: 'exact', values: AGENT_COSTS },
    health: { kind: 'exact', values: AGENT_HEALTHS },
  },
});
