/** Stores spoofed traffic from uploads, and writes an event when it begins. */
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { Events } from '#monitor/events/index.ts';
import { keptSeconds, type UploadConsumer } from '#monitor/intake/index.ts';
import { addMinutes, listBegun, type SpoofedMinute } from './store.ts';

/** A sender may use any address: the list has them all. */
const eventsMax = 5;

export function createSpoofedConsumer(events: Pick<Events, 'record'>): UploadConsumer<SpoofedMinute[]> {
  return {
    kind: 'spoofed',
    select({ siteId, sensorId, nowMs, upload }) {
      const now = nowMs / 1000;
      const found = upload.minutes.flatMap(({ minute, capture, spoofed = [] }) =>
        minute <= now - keptSeconds || minute >= now + aheadSecondsMax
          ? []
          : spoofed.map(({ deviceKey, address, bytes, packets }) => {
              const at = deviceKey.lastIndexOf('|');
              const sender = { segment: deviceKey.slice(0, Math.max(0, at)), mac: deviceKey.slice(at + 1) };
              return {
                siteId,
                sensorId,
                minute,
                capture,
                ...sender,
                address: address || null,
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
        for (const { siteId, sensorId, macs, occurredAtMs, ...details } of begun)
          await events.record(trx, {
            kind: 'spoofed_traffic',
            siteId,
            sensorId,
            occurredAtMs,
            details: { ...details, mac_addresses: macs },
          });
      }
    },
  };
}
