import { createServer } from 'node:net';

import { expect } from 'vitest';

import type { Adapter, AdapterTarget } from '../../src/adapters/contract.js';
import type { ReleaseResource } from '../../src/releases/index.js';
import { AdapterDriver, adapterTarget, resource } from './adapter-driver.js';
import { adapterServers, type StartAdapterServer } from './adapter-servers.js';
import { binding, listenSomewhere, programHost, type ProgramHost } from './programs.js';

/** What a server is doing when it is cut off. */
export const COURSE_PHASES = ['deploys', 'updates', 'removes'] as const;
export type CoursePhase = (typeof COURSE_PHASES)[number];

/** More changes than any phase makes: a loop that gets there never ended by itself. */
export const CHANGES_MAX = 100;

/** A deployment of one program and one directory, on servers that are cut off. */
export interface CrashCourse {
  readonly host: ProgramHost;
  readonly adapter: Adapter;
  readonly startServer: StartAdapterServer;
  /** Another text is another release. */
  release(text: string): readonly ReleaseResource[];
  /** The deployment as that phase finds it, the next step of it asked for. */
  begin(phase: CoursePhase): Promise<AdapterDriver>;
  /** `<resource> <launch>` of each start that lives, whoever recorded it. */
  launchesOf(target: AdapterTarget): Promise<string[]>;
  /** By a later lease; checks that nothing is left. */
  takeAway(driver: AdapterDriver): Promise<void>;
  end(): Promise<number>;
}

export async function crashCourse(): Promise<CrashCourse> {
  const host = programHost();
  const adapter = host.adapter();
  const startServer = await adapterServers(host);
  // Answers every health check at once: how programs become healthy is not the question here.
  const listener = createServer((socket) => socket.destroy());
  const health = { tcp: { port: await listenSomewhere(listener) } };

  const release = (text: string): readonly ReleaseResource[] => [
    resource({ name: 'data', serviceType: 'directory', lifecycle: 'FROZEN' }),
    resource({
      name: 'one',
      requires: ['data'],
      spec: { command: ['sleep', '300'], cwd: binding('data', 'path'), env: { TEXT: text }, health },
    }),
  ];
  const launchesOf = async ({ deploymentId }: AdapterTarget): Promise<string[]> => {
    const all = (await host.processes()).filter(({ mark }) => mark.deploymentId === deploymentId);
    return [...new Set(all.map(({ mark }) => `${mark.resource} ${mark.launch}`))].sort();
  };
  return {
    host,
    adapter,
    startServer,
    release,
    launchesOf,
    async begin(phase) {
      const driver = new AdapterDriver(adapter, adapterTarget('process', release('v1')));
      if (phase === 'deploys') return driver;
      expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
      return driver.next(release('v2'));
    },
    async takeAway(driver) {
      driver.next();
      expect((await driver.settle(() => driver.remove('LIVE'))).outcome).toEqual({ kind: 'done' });
      expect((await driver.remove('FROZEN')).outcome).toEqual({ kind: 'done' });
      expect(await launchesOf(driver.target)).toEqual([]);
      for (const folder of ['runs', 'directories']) {
        expect(host.names(folder)).not.toContain(driver.target.deploymentId);
      }
    },
    end() {
      listener.close();
      return host.end();
    },
  };
}
