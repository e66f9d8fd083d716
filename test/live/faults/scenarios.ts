import type { Scenario } from './scenario.js';
import { chains } from './scenarios/chains.js';
import { chaos } from './scenarios/chaos.js';
import { databaseStops } from './scenarios/database-stops.js';
import { drains } from './scenarios/drains.js';
import { endurance } from './scenarios/endurance.js';
import { herd } from './scenarios/herd.js';
import { opens } from './scenarios/opens.js';
import { races } from './scenarios/races.js';
import { replays } from './scenarios/replays.js';
import { replicaKills } from './scenarios/replica-kills.js';
import { resumes } from './scenarios/resumes.js';
import { starts } from './scenarios/starts.js';

const ALL = [
  chains,
  chaos,
  databaseStops,
  drains,
  endurance,
  herd,
  opens,
  races,
  replays,
  replicaKills,
  resumes,
  starts,
];

/** By name. Each is run in its small form by a test beside it. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = Object.fromEntries(
  ALL.map((one) => [one.name, one as unknown as Scenario]), // each is given a size of its own kind only
);
