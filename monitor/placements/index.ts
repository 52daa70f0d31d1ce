/**
 * Placements: which node carried a server's interfaces and addresses, and when.
 *
 * They decide who may speak. A sensor speaks for the addresses and MACs of its own node's servers, and for those that no
 * server has; what it says of another node's is foreign. Between the listing that last named one node and the one that
 * first named the next, both speak. A server that was never listed before is taken to have been on its first node always.
 *
 * Verdicts are kept with the facts, so whoever judges holds `share` to the end of its transaction, and a change waits for
 * all of them: nothing is judged by what has changed meanwhile.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { isAt, isForeign, type Place, type Placement } from './placement.ts';
import * as store from './store.ts';

export { covers, isForeign, type Place, type Placement } from './placement.ts';
export { type ChangedAddress, listNodes, type NodeName } from './store.ts';

/** An address or a MAC that a sensor speaks of. */
export interface Spoken {
  sensorId: number;
  /** Canonical text. */
  subject: string;
}

/**
 * Says whether what a sensor tells of an address or MAC in a minute is foreign. An address that is not unique is asked about
 * with the segments that it may have been seen on: a blank one is any.
 */
export type ForeignCheck = (
  sensorId: number,
  subject: string,
  minute: number,
  segments?: readonly string[],
) => boolean;

/** Keeps placements as they are to the end of the transaction. */
export async function share(trx: Queryable): Promise<void> {
  await store.lockShared(trx);
}

/** Looks up who may speak for these addresses, none twice. Call it under `share` where the verdict is kept. */
export function checkAddresses(db: Queryable, spoken: readonly Spoken[]): Promise<ForeignCheck> {
  return check(db, spoken, store.findAddressPlacements);
}

/** As `checkAddresses`, of MACs. */
export function checkMacs(db: Queryable, spoken: readonly Spoken[]): Promise<ForeignCheck> {
  return check(db, spoken, store.findMacPlacements);
}

const anywhere = [''];

async function check(
  db: Queryable,
  spoken: readonly Spoken[],
  find: (db: Queryable, spoken: readonly Spoken[]) => Promise<(Placement & { index: number })[]>,
): Promise<ForeignCheck> {
  const found = spoken.length === 0 ? [] : await find(db, spoken);
  if (found.length === 0) return () => false;
  // By sensor and subject; asked for every row of an upload, so it makes no text.
  const known = new Map<number, Map<string, Placement[]>>();
  for (const { index, ...placement } of found) {
    const { sensorId, subject } = spoken[index]!;
    const ofSensor = known.get(sensorId) ?? new Map<string, Placement[]>();
    known.set(sensorId, ofSensor);
    ofSensor.set(subject, [...(ofSensor.get(subject) ?? []), placement]);
  }
  return (sensorId, subject, minute, segments = anywhere) => {
    const placements = known.get(sensorId)?.get(subject);
    if (placements === undefined) return false;
    const here = placements.filter((placement) => isAt(placement, segments));
    return isForeign(here, minute);
  };
}

/**
 * Brings placements to what a whole listing says. Returns the addresses for which other sensors speak than before, with
 * since when; takes the lock of changes only if there are any. Call it before locks of devices, and before the time of
 * the listing is written, in the transaction that applies the listing.
 */
export async function applyListing(
  trx: Queryable,
  places: readonly Place[],
): Promise<store.ChangedAddress[]> {
  const changes = await store.findChanges(trx, places);
  if (changes.begun.length === 0 && changes.ended.length === 0) return [];
  await store.lockExclusive(trx);
  return store.writeChanges(trx, changes);
}

/** Ends the placements of servers that are gone, now. */
export async function endServers(
  trx: Queryable,
  servers: readonly { clusterId: number; vmId: number }[],
): Promise<void> {
  if (!(await store.hasOpen(trx, servers))) return;
  await store.lockExclusive(trx);
  await store.endServers(trx, servers);
}

/** Keeps everybody from judging, and returns how to list the addresses that these nodes have had. */
export async function lockNodes(
  trx: Queryable,
): Promise<(nodes: readonly string[]) => Promise<store.ChangedAddress[]>> {
  await store.lockExclusive(trx);
  return (nodes) => store.listAddressesOf(trx, nodes);
}
