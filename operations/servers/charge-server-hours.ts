/**
 * Charges the hours of running orders to their accounts' credit.
 *
 * An hour is charged when it begins, up to the plan's cap for the UTC month. The reference of an entry names server and
 * hour, so a tick that is repeated, or run by two processes, charges nothing twice; hours missed while the program was
 * down are made up for.
 */
import { appendLedgerEntry, lockFreeBalances } from '#operations/billing/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

const batchMax = 200;

/** Charges every server-hour that has begun; returns how many were charged. */
export async function chargeServerHours(db: Queryable): Promise<number> {
  let chargedCount = 0;
  let afterServerId = 0;
  for (;;) {
    const { due, charged } = await db.transaction().execute((tx) => chargeBatch(tx, afterServerId));
    if (due.length === 0) return chargedCount;
    chargedCount += charged;
    // Every account of the batch is locked: the next tick comes back for them.
    if (charged === 0) afterServerId = Math.max(...due.map((hour) => hour.serverId));
  }
}

async function chargeBatch(
  tx: Queryable,
  afterServerId: number,
): Promise<{ due: store.DueHour[]; charged: number }> {
  const due = await store.lockDueHours(tx, { afterServerId, limit: batchMax });
  const free = await lockFreeBalances(
    tx,
    due.map((hour) => hour.tenantId),
  );
  const payable = due.filter((hour) => free.has(hour.tenantId));
  for (const hour of payable) {
    const amount = Math.min(hour.hourlyQuanta, Math.max(0, hour.monthlyCapQuanta - hour.chargedQuanta));
    if (amount > 0) {
      await appendLedgerEntry(tx, {
        tenantId: hour.tenantId,
        amountQuanta: -amount,
        description: `Server ${hour.serverId}, hour from ${hour.from}`,
        metadata: {
          source: 'server_hours',
          reference: `${hour.serverId}:${hour.from}`,
          server_id: hour.serverId,
        },
      });
    }
    await store.noteChargedHour(tx, hour, amount);
  }
  return { due, charged: payable.length };
}
