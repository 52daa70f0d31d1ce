/**
 * Placements: the node of a server's interfaces and addresses over time.
 *
 * They decide which sensor may report what. A sensor reports for the addresses and MACs of its own node's servers, and
 * for those of no server; its reports about another node's are foreign. Between the last listing with one node and the
 * first with the next, both nodes' sensors may report. A server that was never listed before counts as always having
 * been on its first node.
 *
 * Verdicts are stored with the facts. So a transaction that judges holds `share` until its end, and a change waits for
 * all of them.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Spoken } from './placement.ts';
import { isAt, isForeign, type PlacedInterface, type Placement } from './placement.ts';
import * as store from './store.ts';

export type { Spoken } from './placement.ts';
export { covers, isForeign, type PlacedInterface, type Placement } from './placement.ts';
export { type ChangedAddress, listNodes, type NodeName } from './store.ts';

/**
 * Returns whether a sensor's report about an address or MAC in a minute is foreign. An address that is not unique is
 * checked with its possible segments; a blank one means any.
 */
export type ForeignCheck = (
  sensorId: number,
  subject: string,
  minute: number,
  segments?: readonly string[],
) => boolean;

/** Placements by sensor and subject; subjects without any have none in their list. */
interface Known {
  bySensor: Map<number, Map<string, Placement[]>>;
  isEmpty: boolean;
}

/**
 * Addresses that transactions under `share` have looked up. Their placements can't change until the transaction ends, so
 * facts and devices of one batch look up each address once.
 */
const sharedAddresses = new WeakMap<Queryable, Known>();

/** Keeps placements unchanged until the end of the transaction. */
export async function share(trx: Queryable): Promise<void> {
  await store.lockShared(trx);
  if (!sharedAddresses.has(trx)) sharedAddresses.set(trx, createKnown());
}

/**
 * Finds the sensors that may report these addresses, which must be distinct. Call it under `share` when the verdict is
 * stored.
 */
export async function checkAddresses(db: Queryable, spoken: readonly Spoken[]): Promise<ForeignCheck> {
  const known = sharedAddresses.get(db) ?? createKnown();
  const unread = spoken.filter(({ sensorId, subject }) => !known.bySensor.get(sensorId)?.has(subject));
  await readPlacements(db, unread, store.findAddressPlacements, known);
  return judgeBy(known);
}

/** Like `checkAddresses`, for MACs. */
export async function checkMacs(db: Queryable, spoken: readonly Spoken[]): Promise<ForeignCheck> {
  const known = createKnown();
  await readPlacements(db, spoken, store.findMacPlacements, known);
  return judgeBy(known);
}

/**
 * Of these reports, by their index, those whose address and MAC a server of the sensor's node had: only then is it certain
 * which server sent.
 */
export function checkInterfaces(
  db: Queryable,
  spoken: readonly store.SpokenInterface[],
): Promise<ReadonlySet<number>> {
  return spoken.length === 0 ? Promise.resolve(new Set()) : store.findOwnInterfaces(db, spoken);
}

const anywhere = [''];

const createKnown = (): Known => ({ bySensor: new Map(), isEmpty: true });

async function readPlacements(
  db: Queryable,
  spoken: readonly Spoken[],
  find: (db: Queryable, spoken: readonly Spoken[]) => Promise<(Placement & { index: number })[]>,
  known: Known,
): Promise<void> {
  if (spoken.length === 0) return;
  const found = await find(db, spoken);
  for (const { sensorId, subject } of spoken) {
    const ofSensor = known.bySensor.get(sensorId) ?? new Map<string, Placement[]>();
    known.bySensor.set(sensorId, ofSensor);
    ofSensor.set(subject, []);
  }
  if (found.length > 0) known.isEmpty = false;
  for (const { index, ...placement } of found) {
    const { sensorId, subject } = spoken[index]!;
    known.bySensor.get(sensorId)!.get(subject)!.push(placement);
  }
}

/** The check is used for every row of an upload, so it creates no strings. */
function judgeBy({ bySensor, isEmpty }: Known): ForeignCheck {
  if (isEmpty) return () => false;
  return (sensorId, subject, minute, segments = anywhere) => {
    const placements = bySensor.get(sensorId)?.get(subject);
    if (placements === undefined || placements.length === 0) return false;
    const here = placements.filter((placement) => isAt(placement, segments));
    return isForeign(here, minute);
  };
}

/**
 * Updates placements from a complete listing. Returns the addresses whose reporting sensor changed, and since when.
 * Takes the exclusive lock only if there are changes. Call it in the transaction that applies the listing, before locks
 * of devices and before the time of the listing is written. `listedBefore` is the time of the previous listing, as text;
 * null: there was none.
 */
export async function applyListing(
  trx: Queryable,
  places: readonly PlacedInterface[],
  listedBefore: string | null,
): Promise<store.ChangedAddress[]> {
  const changes = await store.findChanges(trx, places);
  if (changes.begun.length === 0 && changes.ended.length === 0) return [];
  await store.lockExclusive(trx);
  return store.writeChanges(trx, changes, listedBefore);
}

/** Ends the placements of ended servers, now. */
export async function endServers(
  trx: Queryable,
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<void> {
  if (!(await store.hasOpen(trx, servers))) return;
  await store.lockExclusive(trx);
  await store.endServers(trx, servers);
}

/** Waits for all transactions that judge, and blocks others until the end of this one. */
export async function blockJudging(trx: Queryable): Promise<void> {
  await store.lockExclusive(trx);
}

/** Blocks all judging, and returns a function that lists the addresses that these nodes have had. */
export async function lockNodes(
  trx: Queryable,
): Promise<(nodes: readonly string[]) => Promise<store.ChangedAddress[]>> {
  await store.lockExclusive(trx);
  return (nodes) => store.listAddressesOf(trx, nodes);
}
