/**
 * Redis or Valkey as a shared store of the server programs: a connection that no program waits for.
 *
 * A store that evicts keys is refused, and its URL, which may hold a password, is in no message.
 */
export { createRedisConnection } from './connection.ts';
