/**
 * What happened, for people to read: kind, site, time, facts. An event is written in the transaction that makes it
 * true, so it is neither lost nor told of something that was rolled back.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type EventFilter,
  type EventInput,
  insertEvent,
  listEventKinds,
  listEvents,
  type MonitorEvent,
} from './store.ts';

export type { EventFilter, EventInput, MonitorEvent } from './store.ts';

export interface Events {
  /** Writes an event; give the transaction that it belongs to. */
  record(trx: Queryable, event: EventInput): Promise<void>;
  /** A site's events that fit, newest first. */
  list(siteId: number, limit: number, filter?: EventFilter): Promise<MonitorEvent[]>;
  /** The kinds that a site has events of. */
  listKinds(siteId: number): Promise<string[]>;
}

export function createEvents(deps: { db: () => Queryable }): Events {
  return {
    record: (trx, event) => insertEvent(trx, event),
    list: (siteId, limit, filter) => listEvents(deps.db(), siteId, limit, filter),
    listKinds: (siteId) => listEventKinds(deps.db(), siteId),
  };
}
