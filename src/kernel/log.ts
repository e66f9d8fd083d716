/** The part of a pino logger that modules use, so that nothing but the composition root knows pino. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const ignore = (): void => undefined;

export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
