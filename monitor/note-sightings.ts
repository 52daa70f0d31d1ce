/** What uploads tell of hosts and their neighbours, handed on to those who keep it: once for each batch. */
import type { Devices, HostSighting } from './devices/index.ts';
import type { AppliedUpload } from './inbox/index.ts';
import type { Sensors } from './sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Sites in the order of their ids, so that two workers that see the same devices can't wait for each other in a circle. */
export async function noteSightings(
  trx: Queryable,
  uploads: readonly AppliedUpload[],
  sensors: Pick<Sensors, 'noteInventories'>,
  devices: Pick<Devices, 'recordSightings'>,
): Promise<void> {
  const inventories = uploads.flatMap(({ sensorId, minutes, inventory }) =>
    inventory && minutes.length > 0 ? [{ sensorId, inventory }] : [],
  );
  if (inventories.length > 0) await sensors.noteInventories(trx, inventories);
  const bySite = new Map<number, HostSighting[]>();
  for (const upload of uploads) {
    const sightings = bySite.get(upload.siteId) ?? [];
    bySite.set(upload.siteId, sightings);
    collectSightings(upload, sightings);
  }
  const sites = [...bySite].sort(([a], [b]) => a - b);
  for (const [siteId, sightings] of sites) {
    if (sightings.length > 0) await devices.recordSightings(trx, siteId, sightings);
  }
}

function collectSightings({ minutes, inventory }: AppliedUpload, into: HostSighting[]): void {
  let newest = 0;
  for (const { minute, hosts } of minutes) {
    newest = Math.max(newest, minute);
    for (const { deviceKey, address } of hosts) if (deviceKey !== '') into.push({ deviceKey, address, minute });
  }
  if (newest === 0 || !inventory) return;
  for (const { segment, mac, address } of inventory.neighbours) {
    into.push({ deviceKey: `${segment}|${mac}`, address, minute: newest });
  }
}
