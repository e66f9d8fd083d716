/**
 * For Node before version 22, which has no WebSocket of its own: pass it as `webSocketImpl`. Apart from `index.ts`, so that
 * bundles for browsers do not carry it.
 */
export { WebSocket as nodeWebSocket } from 'ws';
