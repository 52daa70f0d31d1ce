/**
 * Devices: MACs that sensors saw on a segment, their names, and the addresses they own.
 *
 * A device is a visible `segment|MAC` of a site. Its label is the operator's name, else the matched machine's, else the
 * manufacturer's, else the MAC (NET-2.1.1). Destroyed machines archive their devices. Traffic that began after the
 * archive restores a device; older traffic that arrives late does not (NET-3.3). Nothing is deleted.
 */

import { bind } from '#common/bind/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import type { Events } from '#monitor/events/index.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import type { Backlog, Vendors } from '#monitor/vendors/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { listAddressConflicts, listOwners, listSegments } from './address-store.ts';
import { parseDeviceKey } from './device.ts';
import * as reads from './list-store.ts';
import { findDevice } from './list-store.ts';
import { placeDetails, recordSightings } from './record-sightings.ts';
import type { SightingUpload } from './sighting.ts';
import { insertBindings, lockAllSites, type NewBinding, resolveConflicts } from './sightings-store.ts';
import * as store from './store.ts';

export type { AddressConflict, AddressOwner, AddressPlace } from './address-store.ts';
export {
  type Device,
  type DeviceLabel,
  deviceKeyOf,
  labelDevice,
  parseDeviceKey,
  parseMac,
} from './device.ts';
export {
  type Claim,
  type Conflict,
  type DeviceCounts,
  type DeviceFilter,
  type DeviceSort,
  deviceFilters,
  deviceSorts,
} from './list-store.ts';
export type { SightingUpload } from './sighting.ts';
export type { MatchInput } from './store.ts';

export type Devices = ReturnType<typeof createDevices>;

export function createDevices(deps: {
  db: () => Queryable;
  events: Events;
  vendors: Pick<Vendors, 'findKnown'>;
}) {
  const { db } = deps;
  return {
    /**
     * Stores the devices and addresses of many uploads, in the transaction that adds their minutes. Call it once, and
     * last, because new data takes a lock of its site until the end. `minutes` and `inventory` of an upload can be passed
     * unchanged.
     */
    recordSightings: (trx: Queryable, batch: readonly SightingUpload[]) => recordSightings(deps, trx, batch),
    /** Reads sightings from the minutes and inventories of uploads, like `recordSightings`. Register it last. */
    consumer: {
      kind: 'sightings',
      select: ({ siteId, sensorId, upload: { minutes, inventory } }) =>
        minutes.length > 0 || inventory ? { siteId, sensorId, minutes, inventory } : null,
      apply: (trx, batch) => recordSightings(deps, trx, batch),
    } satisfies UploadConsumer<SightingUpload>,
    /** Stores matches that an import confirmed. Returns the number of changed devices. */
    match: matchDevices,
    /** MACs of the devices whose last match is this machine. */
    listMatchedMacs: store.listMatchedMacs,
    /** Archives the devices of a destroyed machine. Returns their number. */
    archiveMachine: (trx: Queryable, gone: ArchiveMachineInput) => archiveMachine(deps, trx, gone),
    ...bind(db, {
      ...{ name: nameDevice, list: reads.listDevices, page: reads.pageDevices, counts: reads.countDevices },
      ...{ find: reads.findDevice, listConflicts: reads.listConflicts },
      ...{ listOwners, listSegments, listAddressConflicts },
    }),
    /** Devices by `segment|MAC`, as in facts; unknown keys are left out. */
    findByKeys: (siteId: number, keys: readonly string[]) =>
      reads.findByKeys(
        db(),
        siteId,
        keys.map(parseDeviceKey).filter((key) => key !== null),
      ),
    /** The addresses that these devices own. */
    listClaims: (deviceIds: readonly number[]) => reads.listClaims(db(), deviceIds, true),
    /** The addresses that a device owned, for three months; live claims first. */
    listBindings: (deviceId: number) => reads.listClaims(db(), [deviceId], false),
    /** Devices without a manufacturer, for `vendors`. */
    backlog: {
      list: (afterId, limit) => store.listUnnamed(db(), afterId, limit),
      write: (names) => writeManufacturers(db(), names),
    } satisfies Backlog,
  };
}

/** Stores matches that an import confirmed. Returns the number of changed devices. Unchanged matches take no lock. */
async function matchDevices(trx: Queryable, matches: readonly store.MatchInput[]): Promise<number> {
  if (matches.length === 0 || (await store.countUnmatched(trx, matches)) === 0) return 0;
  await lockAllSites(trx);
  return store.writeMatches(trx, matches);
}

/** Rows of one transaction; sightings wait meanwhile. */
const batchSize = 1_000;

/** Stores the manufacturers of devices without one; a manufacturer that was stored meanwhile stays. */
async function writeManufacturers(db: Queryable, names: readonly { id: number; manufacturer: string }[]) {
  for (let i = 0; i < names.length; i += batchSize) {
    await db.transaction().execute(async (trx) => {
      await lockAllSites(trx);
      await store.updateManufacturers(trx, names.slice(i, i + batchSize));
    });
  }
}

const nameLengthMax = 80;

/**
 * Names a device's MAC, on every segment that shows it; an empty name restores automatic identification (NET-2.1.3).
 * Throws `devices.invalid`; false when the site has no such device.
 */
async function nameDevice(
  db: Queryable,
  actor: Actor,
  input: { siteId: number; deviceId: number; name: string },
): Promise<boolean> {
  requireOperator(actor);
  const device = await findDevice(db, input.siteId, input.deviceId);
  if (!device) return false;
  const name = oneLine(input.name);
  if (name.length > nameLengthMax) {
    throw new CodedError('devices.invalid', `A device's name has at most ${nameLengthMax} characters.`);
  }
  await inTransaction(db, async (trx) => {
    if (name === '') await store.deleteName(trx, device.mac);
    else await store.upsertName(trx, device.mac, name, actor.kind === 'person' ? actor.id : null);
    await record(trx, actor, {
      operation: 'device.name',
      subject: { kind: 'device', id: input.deviceId, name: device.mac },
      after: { name: name || null },
    });
  });
  return true;
}

interface ArchiveMachineInput {
  clusterId: number;
  serverId: number;
  /** Site of the cluster's mapping; null archives only devices that were matched to the machine. */
  siteId: number | null;
  /** The machine's MACs, canonical. */
  macs: readonly string[];
  /** Those of them that another live machine of the site uses now; their devices stay. */
  keptMacs: readonly string[];
}

/**
 * Archives the devices of a destroyed machine, releases their claims, and resolves the conflicts that only those claims
 * caused. Deletes nothing (NET-4.7). Returns the number of devices archived by this call.
 */
async function archiveMachine(deps: { events: Events }, trx: Queryable, gone: ArchiveMachineInput) {
  await lockAllSites(trx);
  const { archived, released } = await store.archiveDevices(trx, gone);
  await insertBindings(trx, released.flatMap(toLaterBinding));
  await store.endMatches(trx, gone.clusterId, gone.serverId);
  for (const { siteId, macs, ...place } of await resolveConflicts(trx, released)) {
    await deps.events.record(trx, {
      kind: 'ip_conflict_resolved',
      siteId,
      details: {
        ...placeDetails(place),
        mac_addresses: macs,
        reason: 'machine_destroyed',
        cluster_id: gone.clusterId,
        virtual_machine_id: gone.serverId,
      },
    });
  }
  return archived;
}

function toLaterBinding({ laterMinute, ...claim }: store.ReleasedClaim): NewBinding[] {
  if (laterMinute === null) return [];
  return [
    { ...claim, id: null, firstMinute: laterMinute, lastMinute: laterMinute, endedMs: null, endedBy: null },
  ];
}
