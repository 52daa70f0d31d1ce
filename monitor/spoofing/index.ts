/**
 * Spoofed traffic: what MACs sent from addresses that the inventory gives to others.
 *
 * The plan names to each sensor the MACs of its servers' addresses. A sensor that captures a bridge counts what others send from them
 * apart, so it is on no address and in no fact. It is stored by hour for three months, listed on the sensor's page, and
 * an event when an address begins to be spoofed after an hour without. What is repeated counts once, as all of an upload.
 */
import type { Events } from '#monitor/events/index.ts';
import { listSpoofedTraffic } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createSpoofedConsumer } from './consume-spoofed.ts';
import { createOwnersSection } from './owners-section.ts';

export type Spoofing = ReturnType<typeof createSpoofing>;

export function createSpoofing(deps: {
  db: () => Queryable;
  reader: () => Queryable;
  events: Pick<Events, 'record'>;
}) {
  return {
    /** The section of the sensors' plans. */
    section: createOwnersSection(deps),
    /** Takes spoofed traffic of uploads. */
    consumer: createSpoofedConsumer(deps.events),
    /** Of a sensor since then by capture, sender and address, the latest first. */
    listOfSensor: (siteId: number, sensorId: number, sinceMs: number, limit: number) =>
      listSpoofedTraffic(deps.reader(), siteId, sensorId, sinceMs, limit),
  };
}
