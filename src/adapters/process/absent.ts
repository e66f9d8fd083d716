/** For `catch`: undefined when the file, folder or process is not there (any more); everything else is thrown on. */
export function absent(error: unknown): undefined {
  const code = systemCode(error);
  if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ESRCH') return undefined;
  throw error;
}

export function systemCode(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined; // Node's own errors carry it
}
