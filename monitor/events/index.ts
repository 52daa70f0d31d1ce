/**
 * Events for people: kind, site, time, details. An event is written in the transaction of its change, so that it is
 * neither lost nor about a rolled-back change.
 */
import { nameSensors } from '#monitor/views/sensor-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type EventFilter,
  type EventInput,
  insertEvent,
  listEventKinds,
  listEvents,
  type StoredEvent,
} from './store.ts';

export type { EventInput } from './store.ts';

export interface MonitorEvent extends StoredEvent {
  /** The sensor's host, also for a removed sensor. */
  hostName: string | null;
}

export type Events = ReturnType<typeof createEvents>;

export function createEvents(deps: { db: () => Queryable }) {
  return {
    /** Writes an event in the transaction of its change. */
    record: (trx: Queryable, event: EventInput) => insertEvent(trx, event),
    /** A site's events that match the filter, newest first. */
    async list(siteId: number, limit: number, filter?: EventFilter): Promise<MonitorEvent[]> {
      const events = await listEvents(deps.db(), siteId, limit, filter);
      const sensorIds = events.flatMap(({ sensorId }) => (sensorId === null ? [] : [sensorId]));
      const names = await nameSensors(deps.db(), [...new Set(sensorIds)]);
      return events.map((event) => ({
        ...event,
        hostName: event.sensorId === null ? null : (names.get(event.sensorId)?.hostName ?? null),
      }));
    },
    /** Kinds of a site's events. */
    listKinds: (siteId: number) => listEventKinds(deps.db(), siteId),
  };
}
