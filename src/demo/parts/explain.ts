import { SlipwayRequestError } from '../../client/index.js';

/** Why the demo ended, and what to do about it. */
export function explain(error: unknown, url: string): string {
  if (error instanceof SlipwayRequestError && error.code === 'NETWORK') {
    return `No server answers at ${url}. Start one with \`npm start\` in another terminal, then run \`npm run demo\` again. Elsewhere: set SLIPWAY_URL.`;
  }
  if (
    error instanceof SlipwayRequestError &&
    (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN')
  ) {
    return `${url} does not let the demo in: ${error.message} Set SLIPWAY_TOKEN to a token with the role ADMIN.`;
  }
  return `The demo failed: ${error instanceof Error ? error.message : String(error)}`;
}
