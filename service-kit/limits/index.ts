/**
 * Limits of how often something may happen: at most so many events of a key within any window, such as 120 requests of an
 * API key within a minute.
 *
 * A limit is a sliding log: the stamps of the last events are kept, so there is no edge at which a caller gets twice the
 * limit. Without a store each process counts for itself. With one (Redis or Valkey) all processes of a program count
 * together, exactly: one script decides and records, by the clock of the store. Both give the same answers.
 *
 * While the store does not answer, is full or evicts, each process counts for itself, with what it has counted before; so
 * a key gets at most the limit once for each process, and no request fails or waits because of it (decision 0270). When
 * the store is back it is told of what each process counted meanwhile, at the next event of the key.
 *
 * What has to hold without exception (orders of an account in an hour, failed sign-ins) is counted in the database.
 */

export type { Allowance, SlidingLog } from './event-log.ts';
export { createLimits, type Limits } from './limits.ts';
