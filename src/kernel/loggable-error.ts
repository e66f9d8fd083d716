/**
 * What of an error stands in a log line: enough to find the bug, nothing that opens a door. Drivers hang statements,
 * parameters and rows on their errors, and libraries put addresses with passwords into their messages: only the fields
 * below are taken, and their text is cleaned.
 */
export interface LoggableError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: LoggableError;
  readonly errors?: readonly LoggableError[];
}

const MESSAGE_MAX = 2_000;
const STACK_MAX = 8_000;
const CAUSES_MAX = 5;

export function loggableError(error: unknown, depth = 0): LoggableError {
  if (!(error instanceof Error)) return { type: typeof error, message: cleaned(asText(error), MESSAGE_MAX) };
  const { code } = error as { code?: unknown }; // drivers and Node put one here, under no common type
  return {
    type: error.name,
    // graphql-js prints what was thrown, whole, into the error that it makes of it.
    message:
      error.name === 'NonErrorThrown'
        ? 'something that is no Error was thrown'
        : cleaned(essence(error), MESSAGE_MAX),
    ...(typeof code === 'string' && /^\w{1,40}$/.test(code) ? { code } : {}),
    ...(error.stack === undefined ? {} : { stack: frames(error.stack) }),
    ...(error.cause === undefined || depth >= CAUSES_MAX
      ? {}
      : { cause: loggableError(error.cause, depth + 1) }),
    ...(error instanceof AggregateError && depth < CAUSES_MAX
      ? { errors: error.errors.slice(0, CAUSES_MAX).map((one) => loggableError(one, depth + 1)) }
      : {}),
  };
}

/** Prisma may put the code around the failed call, and its path, before the line that says what is wrong. */
function essence({ name, message }: Error): string {
  return name.startsWith('Prisma') ? (message.trimEnd().split('\n').at(-1) ?? '') : message;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : `a thrown ${value === null ? 'null' : typeof value}`;
}

/** Only the frames, for the message stands beside them; as seen from the package, not from the machine. */
function frames(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^ +at /.test(line))
    .map((line) => line.replace(/(?:file:\/\/)?\/[^\s()]*?\/(src|dist|test|node_modules)\//g, '$1/').trim())
    .join('\n')
    .slice(0, STACK_MAX);
}

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b([a-z][a-z0-9+.-]*):\/\/[^\s"'`]*@[^\s"'`]*/gi, '$1://[redacted]'],
  [/\bpostgres(?:ql)?:\/\/[^\s"'`]*/gi, 'postgresql://[redacted]'],
  [/\bslp_[\w-]+/g, 'slp_[redacted]'],
  [/\bbearer\s+[^\s"'`]+/gi, 'Bearer [redacted]'],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, '[redacted token]'],
  [/\b(password|passwd|secret|token)["']?\s*[=:]\s*["'`]?[^\s,;"'`]+/gi, '$1=[redacted]'],
  // Statements with their values; what PostgreSQL says of them comes without.
  [
    /\b(?:select\b[^\n]*\bfrom|insert\s+into|update\b[^\n]*\bset|delete\s+from)\b[^\n]*/gi,
    '[redacted statement]',
  ],
];

function cleaned(text: string, max: number): string {
  let clean = text;
  for (const [pattern, replacement] of SECRETS) clean = clean.replace(pattern, replacement);
  return clean.slice(0, max);
}
