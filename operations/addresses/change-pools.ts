/** The ranges that a cluster gives addresses out of, as operators make and remove them. */
import { CodedError } from '#common/errors/index.ts';
import { formatAddress, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import { type Actor, requireOperator, requireStaff } from '#operations/accounts/index.ts';
import { lockCluster } from '#operations/clusters/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { AddressPool } from './allocation.ts';
import * as store from './store.ts';

/** A range and how many of its addresses are allocated. */
export interface PoolUse extends AddressPool {
  id: number;
  family: 4 | 6;
  givenCount: number;
  /** Addresses that servers may have; Infinity for an IPv6 range. */
  size: number;
}

/** Above this share of allocated addresses, a range counts as nearly full. */
const nearlyFull = 0.9;

export const isNearlyFull = (pool: Pick<PoolUse, 'givenCount' | 'size'>): boolean =>
  pool.givenCount >= pool.size * nearlyFull;

/** All pools, or one cluster's. Staff only. */
export async function listPools(db: Queryable, actor: Actor, clusterId: number | null): Promise<PoolUse[]> {
  requireStaff(actor);
  const pools = await store.listPools(db, clusterId);
  return pools.map((pool) => ({ ...pool, size: sizeOf(pool) }));
}

/**
 * Throws `addresses.invalid` (details.field): a prefix that overlaps another one of the cluster, a gateway or a range
 * that is not inside it. A gateway inside the range is never allocated. Operators only.
 */
export async function addPool(db: Queryable, actor: Actor, given: AddressPool): Promise<number> {
  requireOperator(actor);
  const prefix = parsePrefix(given.prefix.trim());
  if (!prefix || !given.prefix.includes('/'))
    throw invalid('prefix', 'A network such as 203.0.113.0/24 or 2001:db8::/64, without host bits.');
  const inside = (field: 'gateway' | 'firstAddress' | 'lastAddress') => {
    const bytes = parseAddress(given[field].trim());
    if (!bytes) throw invalid(field, 'An address such as 203.0.113.10.');
    if (!prefixContains(prefix, bytes)) throw invalid(field, 'This address is not inside the network.');
    return bytes;
  };
  const [gateway, first, last] = [inside('gateway'), inside('firstAddress'), inside('lastAddress')];
  if (Buffer.compare(first, last) > 0)
    throw invalid('lastAddress', 'The last address comes before the first.');
  const pool = {
    clusterId: given.clusterId,
    prefix: `${formatAddress(prefix.bytes)}/${prefix.length}`,
    gateway: formatAddress(gateway),
    firstAddress: formatAddress(first),
    lastAddress: formatAddress(last),
  };
  return inTransaction(db, async (tx) => {
    if (!(await lockCluster(tx, pool.clusterId)))
      throw new CodedError('addresses.not_found', 'There is no such cluster.');
    const overlapping = await store.findOverlap(tx, pool.clusterId, pool.prefix);
    if (overlapping !== null)
      throw invalid('prefix', `It overlaps ${overlapping}, which this cluster has already.`);
    const id = await store.insertPool(tx, pool);
    const subject = { kind: 'pool', id, name: pool.prefix };
    await record(tx, actor, { operation: 'pool.create', subject, after: pool });
    return id;
  });
}

/**
 * Removes a pool that no address was ever given out of: others stay, because what was observed of an address is
 * attributed by its history. Throws `addresses.not_found`, `addresses.in_use`. Operators only.
 */
export async function removePool(db: Queryable, actor: Actor, poolId: number): Promise<void> {
  requireOperator(actor);
  await inTransaction(db, async (tx) => {
    const wasUsed = await store.lockPoolUse(tx, poolId);
    if (wasUsed === null) throw new CodedError('addresses.not_found', 'There is no such range.');
    if (wasUsed)
      throw new CodedError(
        'addresses.in_use',
        'Nothing was removed. Servers have used addresses of this range, and their history is kept.',
      );
    const pool = (await store.listPools(tx, null)).find((each) => each.id === poolId);
    await store.deletePool(tx, poolId);
    const subject = { kind: 'pool', id: poolId, name: pool?.prefix ?? null };
    await record(tx, actor, { operation: 'pool.remove', subject, before: pool ?? null });
  });
}

function sizeOf({ firstAddress, lastAddress, gateway }: AddressPool): number {
  const numberOf = (text: string) => BigInt(`0x${Buffer.from(parseAddress(text)!).toString('hex')}`);
  const [first, last, held] = [numberOf(firstAddress), numberOf(lastAddress), numberOf(gateway)];
  const size = last - first + (first <= held && held <= last ? 0n : 1n);
  return size > BigInt(Number.MAX_SAFE_INTEGER) ? Number.POSITIVE_INFINITY : Number(size);
}

const invalid = (field: string, message: string) => new CodedError('addresses.invalid', message, { field });
