/**
 * The moment that change cursors are made of, as SQL: text in the form of a `pg_snapshot`. Selected in the transaction of
 * the rows it belongs to, and before a cursor is made of it. Any role may call it; see the first migration for why it is
 * not plainly `pg_current_snapshot()`.
 */
export const LOG_POSITION = 'slipway_log_position()';
