import { join } from 'node:path';

/**
 * Where things lie below the server's data folder. Only our own user may read any of it.
 *
 *     process/fences/<deployment>/<number>                 the highest lease that acted; outlives the deployment
 *     process/runs/<deployment>/<resource>/out             what its programs wrote
 *     process/runs/<deployment>/<resource>/out.<offset>    the part before, up to that many bytes since the beginning
 *     process/runs/<deployment>/<resource>/work            the working folder when the spec names none
 *     process/runs/<deployment>/<resource>/launches/<id>/  one start: record, pid, exit code, when it was told to stop
 *     process/directories/<deployment>/<resource>/<name>   FROZEN data
 *     process/trash/<id>                                   what is being deleted
 */
export interface Layout {
  readonly base: string;
  readonly runs: string;
  readonly fences: string;
  readonly directories: string;
  /** What is being deleted: moved here in one step first. */
  readonly trash: string;
}

export function layoutOf(dataDir: string): Layout {
  const base = join(dataDir, 'process');
  return {
    base,
    runs: join(base, 'runs'),
    fences: join(base, 'fences'),
    directories: join(base, 'directories'),
    trash: join(base, 'trash'),
  };
}

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** Ids and names become names of files. Throws on what could lead elsewhere: only a bug or a forged record has it. */
export function below(folder: string, ...segments: readonly string[]): string {
  for (const segment of segments) {
    if (!SEGMENT.test(segment)) {
      throw new Error(`not a name for a file: ${JSON.stringify(segment.slice(0, 80))}`);
    }
  }
  return join(folder, ...segments);
}

export function resourceFolder(layout: Layout, deploymentId: string, resource: string): string {
  return below(layout.runs, deploymentId, resource);
}

export function launchFolder(layout: Layout, of: LaunchName): string {
  return join(resourceFolder(layout, of.deploymentId, of.resource), 'launches', below('', of.launch));
}

export interface LaunchName {
  readonly deploymentId: string;
  readonly resource: string;
  readonly launch: string;
}

export const OUT = 'out';
