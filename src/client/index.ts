/**
 * The client of Slipway: typed documents over fetch, and subscriptions that survive everything but a final refusal.
 * Runs in Node 20 and newer and in browsers.
 */
export {
  createSlipwayClient,
  type SlipwayClient,
  type SlipwayClientOptions,
  type SlipwayStream,
  type SubscribeOptions,
} from './client.js';
export type { SlipwayDocument } from './document.js';
export {
  SlipwayRequestError,
  SlipwayStreamError,
  type ClientErrorCode,
  type GraphError,
  type ServerErrorCode,
  type SlipwayErrorCode,
} from './errors.js';
export type { RequestOptions } from './request.js';
export type { ResyncReason, StreamCondition, StreamKind } from './resume-model.js';
export type { WebSocketConstructor, WebSocketLike } from './socket.js';
export type { ClientStatus } from './status-board.js';
export type { StreamStatus } from './stream.js';
export { DEFAULT_TIMING, type ClientClock, type Timing } from './timing.js';
export type { CollectionChange, WatchedObject } from './collection.js';
export { watchObjects, type ObjectWatch, type WatchedObjectOf, type WatchOptions } from './watch.js';
export { paginate, type ConnectionPage, type PaginatedNodes } from './paginate.js';
export { type DeploymentGoal } from './phase-meaning.js';
export {
  SlipwayWaitError,
  waitForDeployment,
  type DeploymentReference,
  type WaitFailure,
  type WaitOptions,
} from './wait-for-deployment.js';
export * from './generated/graphql.js';
