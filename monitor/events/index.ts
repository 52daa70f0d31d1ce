/**
 * What happened, for people to read: kind, site, time, facts. An event is written in the transaction that makes it
 * true, so it is neither lost nor told of something that was rolled back.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type EventInput, insertEvent, listEvents, type MonitorEvent } from './store.ts';

export type { EventInput, MonitorEvent } from './store.ts';

export interface Events {
  /** Writes an event; give the transaction that it belongs to. */
  record(trx: Queryable, event: EventInput): Promise<void>;
  /** The newest events of a site, newest first. */
  list(siteId: number, limit: number): Promise<MonitorEvent[]>;
}

export function createEvents(deps: { db: () => Queryable }): Events {
  return {
    record: (trx, event) => insertEvent(trx, event),
    list: (siteId, limit) => listEvents(deps.db(), siteId, limit),
  };
}
