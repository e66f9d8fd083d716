/** Variables by which a program is found again, whoever started it and whatever became of that server. */
export const MARK = {
  /** The folder of the server that keeps its record. */
  folder: 'SLIPWAY_FOLDER',
  deployment: 'SLIPWAY_DEPLOYMENT',
  resource: 'SLIPWAY_RESOURCE',
  launch: 'SLIPWAY_LAUNCH',
  fence: 'SLIPWAY_FENCE',
} as const;
export const RESERVED_NAMES: ReadonlySet<string> = new Set(Object.values(MARK));

export const PORT_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;
