import { pino, type Logger } from 'pino';

import { loggableError, type LoggableError } from '../../kernel/loggable-error.js';

export interface LoggerOptions {
  readonly level: string;
  /** `auto`: `pretty` where standard error is a terminal. */
  readonly format: 'auto' | 'json' | 'pretty';
  /** Where lines go; standard error by default, so that what a command prints stays readable and pipeable. */
  readonly write?: (line: string) => void;
}

/** Fields that may hold a credential wherever they turn up. They should never be logged; this is the seat belt. */
const REDACTED = ['authorization', 'token', 'password', 'secret'].flatMap((name) => [
  name,
  `*.${name}`,
  `*.*.${name}`,
]);

export function createLogger({
  level,
  format,
  write = (line) => process.stderr.write(line),
}: LoggerOptions): Logger {
  const asJson = format === 'json' || (format === 'auto' && !process.stderr.isTTY);
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: REDACTED, censor: '[redacted]' },
      serializers: { err: loggableError },
    },
    { write: asJson ? write : (line) => write(asText(line)) },
  );
}

const LEVELS: Readonly<Record<number, string>> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
};

/** One line for a person: time of day, level, message, fields; an error's stack below it. */
function asText(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>; // written by pino just now
  const rest = Object.entries(fields).map(
    ([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const stack = errorText(err as LoggableError | undefined); // written by our serializer
  return `${String(time).slice(11, 19)} ${LEVELS[Number(level)] ?? ''} ${String(msg)}${rest.join('')}${stack}\n`;
}

function errorText(error: LoggableError | undefined): string {
  if (!error) return '';
  const frames = (error.stack ?? '').replace(/^/gm, '    ');
  const cause = error.cause ? `\n  caused by${errorText(error.cause)}` : '';
  return `\n  ${error.type}: ${error.message}\n${frames}${cause}`;
}
