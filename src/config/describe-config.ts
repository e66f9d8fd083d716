import type { Config } from './config.js';

/** The configuration as it may be logged: tokens and passwords are only said to be there. */
export function describeConfig(config: Config): Config {
  return {
    ...config,
    database: {
      ...config.database,
      url: describeUrl(config.database.url),
      readUrl: describeUrl(config.database.readUrl),
    },
    access: { ...config.access, bootstrapToken: describeSecret(config.access.bootstrapToken) },
    client: { ...config.client, token: describeSecret(config.client.token) },
  };
}

const describeSecret = (value: string | undefined): string | undefined =>
  value === undefined ? undefined : '(set)';

/** Host, port and database: a password can stand in the login and in the query, and both may hold other secrets. */
function describeUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = new URL(text);
  const login = url.username === '' ? '' : `${url.username}${url.password === '' ? '' : ':***'}@`;
  return `${url.protocol}//${login}${url.host}${url.pathname}${url.search === '' ? '' : '?***'}`;
}
