import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { GraphQLSchema } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { WebSocketServer } from 'ws';

/** graphql-ws as its documentation starts it: what our own door is measured against. */
export interface StockServer {
  readonly wsUrl: string;
  close(): Promise<void>;
}

export async function startStockServer(schema: GraphQLSchema, contextValue: object): Promise<StockServer> {
  const http = createServer();
  const sockets = new WebSocketServer({ server: http, path: '/graphql' });
  const protocol = useServer({ schema, context: () => contextValue }, sockets);
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo; // a TCP server has no other
  return {
    wsUrl: `ws://127.0.0.1:${port}/graphql`,
    async close() {
      for (const client of sockets.clients) client.terminate();
      await protocol.dispose();
      http.closeAllConnections();
      await new Promise((resolve) => {
        http.close(resolve);
      });
    },
  };
}
