/**
 * Charges what ready snapshots take, by GB and month of 730 hours, to their accounts' credit.
 *
 * An hour is charged when it begins, as a server's is, at the price of that moment. What an hour costs is the difference of two sums since
 * the snapshot was ready, so that parts of a quantum are never lost and never charged twice. The reference of an entry names snapshot
 * and hour; hours missed while the program was down are made up for. A snapshot that ends is charged in the transaction that ends it.
 */
import { appendLedgerEntry, lockFreeBalances } from '#operations/billing/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './snapshot-store.ts';

const batchMax = 200;

/** Charges every hour that has begun; returns how many snapshots were charged. Accounts that are locked wait for the next tick. */
export async function chargeSnapshots(db: Queryable, gbQuanta: number): Promise<number> {
  let chargedCount = 0;
  let afterId = 0;
  for (;;) {
    const due = await inTransaction(db, async (tx) => {
      const found = await store.lockDueSnapshots(tx, { gbQuanta, afterId, limit: batchMax });
      const free = await lockFreeBalances(
        tx,
        found.map(({ tenantId }) => tenantId),
      );
      for (const one of found) if (free.has(one.tenantId) && (await charge(tx, one))) chargedCount += 1;
      return found;
    });
    const last = due.at(-1);
    if (last === undefined) return chargedCount;
    afterId = last.id;
  }
}

/** Charges what is open of a snapshot that ends, or of all of a server that is gone. */
export async function chargeEnding(
  tx: Queryable,
  gbQuanta: number,
  which: { id: number } | { serverId: number },
): Promise<void> {
  for (const one of await store.lockDueSnapshots(tx, { gbQuanta, ...which })) await charge(tx, one);
}

/** Whether it cost something. */
async function charge(tx: Queryable, due: store.DueSnapshot): Promise<boolean> {
  const { id, serverId, tenantId, hours, quanta } = due;
  if (quanta > 0)
    await appendLedgerEntry(tx, {
      tenantId,
      amountQuanta: -quanta,
      description: `Snapshot ${id} of server ${serverId}, up to its hour ${hours}`,
      metadata: { source: 'snapshots', reference: `${id}:${hours}`, snapshot_id: id, server_id: serverId },
    });
  await store.noteChargedHours(tx, id, hours);
  return quanta > 0;
}

/** What a snapshot of a whole disk costs in a month, at most; nodes count a GB of a disk as 2^30 bytes. */
export const monthlyMaxQuanta = (diskGb: number, gbQuanta: number): number =>
  Math.ceil((diskGb * 2 ** 30 * gbQuanta) / 1_000_000_000);
