/**
 * Devices: MACs that sensors saw on a segment, their names, and the addresses they own.
 *
 * A device is a visible `segment|MAC` of a site. Its label is the operator's name, else the matched machine's, else the
 * manufacturer's, else the MAC (NET-2.1.1). Destroyed machines archive their devices. Traffic that began after the
 * archive restores a device; older traffic that arrives late does not (NET-3.3). Nothing is deleted.
 */
import type { Events } from '#monitor/events/index.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { Backlog, Vendors } from '#monitor/vendors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type AddressConflict,
  type AddressOwner,
  type AddressPlace,
  listAddressConflicts,
  listOwners,
  listSegments,
} from './address-store.ts';
import { type ArchiveMachineInput, archiveMachine } from './archive-machine.ts';
import { type Device, parseDeviceKey } from './device.ts';
import * as reads from './list-store.ts';
import { matchDevices } from './match-devices.ts';
import { nameDevice } from './name-device.ts';
import { recordSightings } from './record-sightings.ts';
import type { SightingUpload } from './sighting.ts';
import * as store from './store.ts';
import { writeManufacturers } from './write-manufacturers.ts';

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

export interface Devices {
  /**
   * Stores the devices and addresses of many uploads, in the transaction that adds their minutes. Call it once, and
   * last, because new data takes a lock of its site until the end. `minutes` and `inventory` of an upload can be passed
   * unchanged.
   */
  recordSightings(trx: Queryable, batch: readonly SightingUpload[]): Promise<void>;
  /** Reads sightings from the minutes and inventories of uploads, like `recordSightings`. Register it last. */
  readonly consumer: UploadConsumer<SightingUpload>;
  /** Stores matches that an import confirmed. Returns the number of changed devices. */
  match(trx: Queryable, matches: readonly store.MatchInput[]): Promise<number>;
  /** MACs of the devices whose last match is this machine. */
  listMatchedMacs(trx: Queryable, clusterId: number, vmId: number): Promise<string[]>;
  /** Archives the devices of a destroyed machine. Returns their number. */
  archiveMachine(trx: Queryable, gone: ArchiveMachineInput): Promise<number>;
  /** Names a MAC; an empty name removes the name. Returns false when the site has no such device. */
  name(actor: Actor, input: { siteId: number; deviceId: number; name: string }): Promise<boolean>;
  /** A site's devices, live ones first. */
  list(siteId: number, limit: number): Promise<Device[]>;
  /** A page of the matching devices, and the number of all matching ones. */
  page(siteId: number, query: reads.DeviceQuery): Promise<{ devices: Device[]; total: number }>;
  counts(siteId: number): Promise<reads.DeviceCounts>;
  find(siteId: number, id: number): Promise<Device | null>;
  /** Devices by `segment|MAC`, as in facts; unknown keys are left out. */
  findByKeys(siteId: number, deviceKeys: readonly string[]): Promise<Device[]>;
  /** Conflicts that involved this MAC, open ones first. */
  listConflicts(siteId: number, mac: string): Promise<reads.Conflict[]>;
  /** The addresses that these devices own. */
  listClaims(deviceIds: readonly number[]): Promise<reads.Claim[]>;
  /** The addresses that a device owned, for three months; live claims first. */
  listBindings(deviceId: number): Promise<reads.Claim[]>;
  /** Owners of an address and their periods, the present owner first. */
  listOwners(siteId: number, place: AddressPlace, limit: number): Promise<AddressOwner[]>;
  /** The segments on which an address that is not globally unique had owners, the most recent first. */
  listSegments(siteId: number, address: string): Promise<string[]>;
  /** Periods in which several MACs claimed an address, open conflicts first. */
  listAddressConflicts(siteId: number, place: AddressPlace, limit: number): Promise<AddressConflict[]>;
  /** Devices without a manufacturer, for `vendors`. */
  readonly backlog: Backlog;
}

export interface DevicesDeps {
  db: () => Queryable;
  events: Events;
  vendors: Pick<Vendors, 'findKnown'>;
}

export function createDevices(deps: DevicesDeps): Devices {
  const { db } = deps;
  return {
    recordSightings: (trx, batch) => recordSightings(deps, trx, batch),
    consumer: {
      kind: 'sightings',
      select: ({ siteId, sensorId, upload: { minutes, inventory } }) =>
        minutes.length > 0 || inventory ? { siteId, sensorId, minutes, inventory } : null,
      apply: (trx, batch) => recordSightings(deps, trx, batch),
    },
    match: matchDevices,
    listMatchedMacs: store.listMatchedMacs,
    archiveMachine: (trx, gone) => archiveMachine(deps, trx, gone),
    name: (actor, input) => nameDevice(db(), actor, input),
    list: (siteId, limit) => reads.listDevices(db(), siteId, limit),
    page: (siteId, query) => reads.pageDevices(db(), siteId, query),
    counts: (siteId) => reads.countDevices(db(), siteId),
    findByKeys: (siteId, keys) =>
      reads.findByKeys(
        db(),
        siteId,
        keys.map(parseDeviceKey).filter((key) => key !== null),
      ),
    listConflicts: (siteId, mac) => reads.listConflicts(db(), siteId, mac),
    find: (siteId, id) => reads.findDevice(db(), siteId, id),
    listClaims: (deviceIds) => reads.listClaims(db(), deviceIds, true),
    listBindings: (deviceId) => reads.listClaims(db(), [deviceId], false),
    listOwners: (siteId, place, limit) => listOwners(db(), siteId, place, limit),
    listSegments: (siteId, address) => listSegments(db(), siteId, address),
    listAddressConflicts: (siteId, place, limit) => listAddressConflicts(db(), siteId, place, limit),
    backlog: {
      list: (afterId, limit) => store.listUnnamed(db(), afterId, limit),
      write: (names) => writeManufacturers(db(), names),
    },
  };
}
