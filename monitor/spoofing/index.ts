/**
 * Spoofed traffic: what MACs sent from addresses that the inventory gives to others, and what servers claim of others.
 *
 * The plan names to each sensor the MACs of its servers' addresses. A sensor that captures a bridge counts what others send from them
 * apart, so it is on no address and in no fact. It is stored by hour for three months, listed on the sensor's page, and
 * an event when a claim begins after an hour without. What is repeated counts once, as all of an upload.
 */

import type { PlanOwners } from '#contracts/sensor-api/http.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { Events } from '#monitor/events/index.ts';
import { keptSeconds, type UploadConsumer } from '#monitor/intake/index.ts';
import { listSection, type PlanSection } from '#monitor/sensors/index.ts';
import { countOwnedAddresses, listAddressOwners } from '#monitor/views/address-store.ts';
import { listSpoofedTraffic } from '#monitor/views/sensor-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addMinutes, listBegun, type SpoofedMinute } from './store.ts';

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
    versions: { owners_version: 2 },
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

// Stores spoofed traffic from uploads, and writes an event when it begins.

/** A sender may use any address: the list has them all. */
const eventsMax = 5;

function createSpoofedConsumer(events: Pick<Events, 'record'>): UploadConsumer<SpoofedMinute[]> {
  return {
    kind: 'spoofed',
    select({ siteId, sensorId, nowMs, upload }) {
      const now = nowMs / 1000;
      const found = upload.minutes.flatMap(({ minute, capture, spoofed = [] }) =>
        minute <= now - keptSeconds || minute >= now + aheadSecondsMax
          ? []
          : spoofed.map(({ deviceKey, address, reason = 'address', bytes, packets }) => {
              const at = deviceKey.lastIndexOf('|');
              const sender = { segment: deviceKey.slice(0, Math.max(0, at)), mac: deviceKey.slice(at + 1) };
              return {
                siteId,
                sensorId,
                minute,
                capture,
                ...sender,
                address: address || null,
                reason,
                bytes,
                packets,
              };
            }),
      );
      return found.length === 0 ? null : found;
    },
    async apply(trx, uploads) {
      for (const minutes of uploads) {
        const begun = await listBegun(trx, minutes, eventsMax);
        await addMinutes(trx, minutes);
        for (const { siteId, sensorId, macs, occurredAtMs, address, ...details } of begun)
          await events.record(trx, {
            kind: 'spoofed_traffic',
            siteId,
            sensorId,
            occurredAtMs,
            details: { ...(address !== null && { address }), ...details, mac_addresses: macs },
          });
      }
    },
  };
}
