/**
 * Devices: what sensors saw on a segment, what it is called, and which addresses it owned.
 *
 * A device is a visible `segment|MAC` of a site. Its label is the operator's name, else the matched machine's, else
 * the manufacturer's, else the MAC (NET-2.1.1). Destroyed machines archive their devices; traffic that began after the
 * archive brings a device back, older traffic that arrives late does not (NET-3.3). Nothing is ever deleted.
 */
import type { Events } from '#monitor/events/index.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { Backlog, Vendors } from '#monitor/vendors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type AddressConflict,
  type AddressOwner,
  listAddressConflicts,
  listOwners,
} from './address-store.ts';
import { type ArchiveMachineInput, archiveMachine } from './archive-machine.ts';
import type { Device } from './device.ts';
import { matchDevices } from './match-devices.ts';
import { nameDevice } from './name-device.ts';
import { recordSightings } from './record-sightings.ts';
import type { SightingUpload } from './sighting.ts';
import * as store from './store.ts';
import { writeManufacturers } from './write-manufacturers.ts';

export type { AddressConflict, AddressOwner } from './address-store.ts';
export { type Device, type DeviceLabel, labelDevice, parseMac } from './device.ts';
export type { SightingUpload } from './sighting.ts';
export type { Claim, MatchInput } from './store.ts';

export interface Devices {
  /**
   * Notes the devices and addresses of many uploads, in the transaction that adds their minutes: once in it, and last,
   * because what is news takes a lock of its site until the end. An upload's `minutes` and `inventory` fit as they are.
   */
  recordSightings(trx: Queryable, batch: readonly SightingUpload[]): Promise<void>;
  /** Stores matches that an import confirmed; returns how many devices changed. */
  match(trx: Queryable, matches: readonly store.MatchInput[]): Promise<number>;
  /** Archives the devices of a machine that is gone; returns how many. */
  archiveMachine(trx: Queryable, gone: ArchiveMachineInput): Promise<number>;
  /** Names a MAC, or with an empty name takes the name away; false when the site has no such device. */
  name(actor: Actor, input: { siteId: number; deviceId: number; name: string }): Promise<boolean>;
  /** A site's devices, live ones first. */
  list(siteId: number, limit: number): Promise<Device[]>;
  find(siteId: number, id: number): Promise<Device | null>;
  /** The addresses that these devices own. */
  listClaims(deviceIds: readonly number[]): Promise<store.Claim[]>;
  /** Which addresses a device owned when, for three months; live claims first. */
  listBindings(deviceId: number): Promise<store.Claim[]>;
  /** Who owned an address and when, the present owner first. */
  listOwners(siteId: number, address: string, limit: number): Promise<AddressOwner[]>;
  /** When several MACs claimed an address, open conflicts first. */
  listAddressConflicts(siteId: number, address: string, limit: number): Promise<AddressConflict[]>;
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
    match: matchDevices,
    archiveMachine: (trx, gone) => archiveMachine(deps, trx, gone),
    name: (actor, input) => nameDevice(db(), actor, input),
    list: (siteId, limit) => store.listDevices(db(), siteId, limit),
    find: (siteId, id) => store.findDevice(db(), siteId, id),
    listClaims: (deviceIds) => store.listClaims(db(), deviceIds, true),
    listOwners: (siteId, address, limit) => listOwners(db(), siteId, address, limit),
    listAddressConflicts: (siteId, address, limit) => listAddressConflicts(db(), siteId, address, limit),
    listBindings: (deviceId) => store.listClaims(db(), [deviceId], false),
    backlog: {
      list: (afterId, limit) => store.listUnnamed(db(), afterId, limit),
      write: (names) => writeManufacturers(db(), names),
    },
  };
}
