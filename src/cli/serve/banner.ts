export interface BannerFacts {
  readonly version: string;
  readonly url: string;
  readonly database: string;
  /** What a caller needs to be let in. */
  readonly access: 'open' | 'token';
}

/** Where the demo looks by itself. */
const DEFAULT_URL = 'http://127.0.0.1:4000';

/** What a person sees when the server is ready: where it is, and the next three things to try. */
export function banner({ version, url, database, access }: BannerFacts): string {
  const endpoint = `${url}/graphql`;
  const settings = [
    ...(url === DEFAULT_URL ? [] : [`SLIPWAY_URL=${url}`]),
    ...(access === 'token' ? ['SLIPWAY_TOKEN=<token>'] : []),
  ];
  const demo = [...settings, 'npm run demo'].join(' ');
  const bearer = access === 'token' ? ` -H 'authorization: Bearer <token>'` : '';
  return [
    '',
    `Slipway ${version} is ready.`,
    '',
    `  GraphQL   ${endpoint}`,
    `  GraphiQL  ${endpoint} (open it in a browser)`,
    `  Database  ${database}`,
    `  Access    ${access === 'open' ? 'open: whoever is on this machine is ADMIN' : 'by token'}`,
    '',
    'Three things to try:',
    `  1. ${demo}    in a second terminal: deploys a real program and streams what happens`,
    `  2. open ${endpoint}    three example operations, live subscriptions included`,
    `  3. curl -s ${endpoint} -H 'content-type: application/json'${bearer} -d '{"query":"{ deployments { nodes { name status { phase } } } }"}'`,
    '',
    'Ctrl-C stops it. The data stays.',
    '',
  ].join('\n');
}
