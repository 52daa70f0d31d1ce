/**
 * Devices: what sensors saw on a segment, what it is called, and which addresses it owned.
 *
 * A device is a visible `segment|MAC` of a site. Its label is the operator's name, else the matched machine's, else
 * the manufacturer's, else the MAC (NET-2.1.1). Destroyed machines archive their devices; traffic that began after the
 * archive brings a device back, older traffic that arrives late does not (NET-3.3). Nothing is ever deleted.
 */
import type { Events } from '#monitor/events/index.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ArchiveMachineInput, archiveMachine } from './archive-machine.ts';
import type { Device } from './device.ts';
import { nameDevice } from './name-device.ts';
import { type HostSighting, recordSightings } from './record-sightings.ts';
import * as store from './store.ts';

export { type Device, type DeviceLabel, labelDevice, parseMac } from './device.ts';
export type { HostSighting } from './record-sightings.ts';
export type { Claim, MatchInput } from './store.ts';

export interface Devices {
  /** Notes devices and their addresses; in the transaction that adds the minutes. */
  recordSightings(trx: Queryable, siteId: number, hosts: readonly HostSighting[]): Promise<void>;
  /** Stores matches that an import confirmed; returns how many devices changed. */
  match(trx: Queryable, matches: readonly store.MatchInput[]): Promise<number>;
  /** Archives the devices of a machine that is gone; returns how many. */
  archiveMachine(trx: Queryable, gone: ArchiveMachineInput): Promise<number>;
  /** Names a MAC, or with an empty name takes the name away; false when the site has no such device. */
  name(actor: Actor, input: { siteId: number; deviceId: number; name: string }): Promise<boolean>;
  /** A site's devices, live ones first. */
  list(siteId: number, limit: number): Promise<Device[]>;
  find(siteId: number, id: number): Promise<Device | null>;
  listClaims(deviceIds: readonly number[]): Promise<store.Claim[]>;
}

export function createDevices(deps: { db: () => Queryable; events: Events }): Devices {
  const { db } = deps;
  return {
    recordSightings: (trx, siteId, hosts) => recordSightings(deps, trx, siteId, hosts),
    match: (trx, matches) => (matches.length === 0 ? Promise.resolve(0) : store.writeMatches(trx, matches)),
    archiveMachine: (trx, gone) => archiveMachine(deps, trx, gone),
    name: (actor, input) => nameDevice(db(), actor, input),
    list: (siteId, limit) => store.listDevices(db(), siteId, limit),
    find: (siteId, id) => store.findDevice(db(), siteId, id),
    listClaims: (deviceIds) => store.listClaims(db(), deviceIds),
  };
}
