/**
 * Events for people: kind, site, time, details. An event is written in the transaction of its change, so that it is
 * neither lost nor about a rolled-back change.
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

export { keptEvents } from './kept.ts';
export type { EventFilter, EventInput, MonitorEvent } from './store.ts';

export interface Events {
  /** Writes an event in the transaction of its change. */
  record(trx: Queryable, event: EventInput): Promise<void>;
  /** A site's events that match the filter, newest first. */
  list(siteId: number, limit: number, filter?: EventFilter): Promise<MonitorEvent[]>;
  /** Kinds of a site's events. */
  listKinds(siteId: number): Promise<string[]>;
}

export function createEvents(deps: { db: () => Queryable }): Events {
  return {
    record: (trx, event) => insertEvent(trx, event),
    list: (siteId, limit, filter) => listEvents(deps.db(), siteId, limit, filter),
    listKinds: (siteId) => listEventKinds(deps.db(), siteId),
  };
}
