/** What a server does with the embedded PostgreSQL, alone: the process that `start-server.ts` talks to. */
import pg from 'pg';
import { StartError } from '../../../src/kernel/start-error.js';
import { startEmbedded } from '../../../src/store/embedded.js';

const say = (event: string, facts: object = {}): void => {
  process.stdout.write(`${JSON.stringify({ event, ...facts })}\n`);
};
const tell = (fields: object, message: string): void => say('log', { ...fields, message });

const [dataDir, fsync = 'off'] = process.argv.slice(2);
if (dataDir === undefined) throw new Error('usage: server-process <data folder> [fsync]');

try {
  const embedded = await startEmbedded({
    dataDir,
    log: { debug: tell, info: tell, warn: tell, error: tell },
    settings: { fsync },
  });
  const stop = async (): Promise<void> => {
    // A drain still needs the database.
    const client = new pg.Client(embedded.connection);
    await client.connect();
    const { rows } = await client.query<{ answer: string }>(`select 'served' as answer`);
    await client.end();
    say('draining', rows[0]);
    await embedded.stop();
    say('stopped');
    process.exit(0);
  };
  process.on('SIGINT', () => void stop());
  const { pid, adopted, connection } = embedded;
  say('ready', { pid, adopted, connection });
  setInterval(() => undefined, 60_000);
} catch (error) {
  if (!(error instanceof StartError)) throw error;
  say('refused', { reason: error.publicMessage });
  process.exit(1);
}
