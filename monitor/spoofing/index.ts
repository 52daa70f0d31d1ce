/**
 * Spoofed traffic: what MACs sent from addresses that the inventory gives to others.
 *
 * The plan names to each sensor the MACs of its servers' addresses. A sensor that captures a bridge counts what others send from them
 * apart, so it is on no address and in no fact. It is stored by hour for three months, listed on the sensor's page, and
 * an event when an address begins to be spoofed after an hour without. What is repeated counts once, as all of an upload.
 */

import type { PlanOwners } from '#contracts/sensor-api/http.ts';
import type { Events } from '#monitor/events/index.ts';
import { listSection, type PlanSection } from '#monitor/sensors/index.ts';
import { countOwnedAddresses, listAddressOwners, listSpoofedTraffic } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createSpoofedConsumer } from './consume-spoofed.ts';

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

/** The contract's bounds of `owners`. */
const addressesMax = 4096;
const macsMax = 8;

function createOwnersSection({
  db,
  reader,
}: {
  db: () => Queryable;
  /** Connections that only read, for what plans ask (NET-5.3). */
  reader: () => Queryable;
}): PlanSection {
  return listSection<PlanOwners>({
    name: 'owners',
    label: 'addresses guarded against spoofing',
    entriesMax: addressesMax,
    advice: 'Move servers to other nodes, or check the node of this sensor.',
    versions: { owners_version: 1 },
    async list({ siteId, node }) {
      const owners = node === null ? [] : await listAddressOwners(reader(), siteId, node);
      return owners.filter(({ macs }) => macs.length <= macsMax);
    },
    toFields: (owners) => ({ owners }),
    countEntries: (subjects) =>
      countOwnedAddresses(
        db(),
        subjects.map(({ sensorId }) => sensorId),
      ),
  });
}
