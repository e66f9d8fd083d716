import type { Clock } from '../../kernel/clock.js';
import type { Log } from '../../kernel/log.js';
import type { EnvironmentInfo } from '../../deployments/index.js';
import type { Layout } from './layout.js';
import type { ProcessTable } from './process-table.js';

/** What the parts of the adapter share: this host, and where things lie on it. */
export interface Host {
  readonly name: string;
  readonly layout: Layout;
  readonly table: ProcessTable;
  readonly clock: Clock;
  readonly log: Log;
  /** The server's own environment, of which programs get PATH, HOME, LANG and TZ. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logMaxBytes: number;
  readonly facts: EnvironmentInfo;
}
