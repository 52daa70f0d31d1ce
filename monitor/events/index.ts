/**
 * Events for people: kind, site, time, details. An event is written in the transaction of its change, so that it is
 * neither lost nor about a rolled-back change.
 */
import { nameSensors } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type EventFilter,
  type EventInput,
  insertEvent,
  listEventKinds,
  listEvents,
  type StoredEvent,
} from './store.ts';

export type { EventFilter, EventInput } from './store.ts';

export interface MonitorEvent extends StoredEvent {
  /** The sensor's host, also for a removed sensor. */
  hostName: string | null;
}

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
    async list(siteId, limit, filter) {
      const events = await listEvents(deps.db(), siteId, limit, filter);
      const sensorIds = events.flatMap(({ sensorId }) => (sensorId === null ? [] : [sensorId]));
      const names = await nameSensors(deps.db(), [...new Set(sensorIds)]);
      return events.map((event) => ({
        ...event,
        hostName: event.sensorId === null ? null : (names.get(event.sensorId)?.hostName ?? null),
      }));
    },
    listKinds: (siteId) => listEventKinds(deps.db(), siteId),
  };
}
