/**
 * Charges the hours of running orders to their accounts' credit.
 *
 * An hour is charged when it begins, up to the plan's cap for the UTC month. The reference of an entry names server and
 * hour, so a tick that is repeated, or run by two processes, charges nothing twice; hours missed while the program was
 * down are made up for.
 */
import { appendLedgerEntry, lockFreeBalances } from '#operations/billing/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { NewPlan } from './action-store.ts';
import * as store from './store.ts';

const batchMax = 200;

/** Charges every server-hour that has begun; returns how many were charged. */
export async function chargeServerHours(db: Queryable): Promise<number> {
  let chargedCount = 0;
  let afterServerId = 0;
  for (;;) {
    const { due, charged } = await inTransaction(db, (tx) => chargeBatch(tx, afterServerId));
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
  for (const hour of payable) await chargeHour(tx, hour);
  return { due, charged: payable.length };
}

async function chargeHour(tx: Queryable, hour: store.DueHour): Promise<void> {
  const amount = await enter(tx, hour, hour.hourlyQuanta, '');
  await store.noteChargedHour(tx, hour, amount);
}

/** Enters what the month's cap leaves of a price; returns it. `suffix` tells two entries for one hour apart. */
async function enter(tx: Queryable, hour: store.DueHour, quanta: number, suffix: string): Promise<number> {
  const amount = Math.min(quanta, Math.max(0, hour.monthlyCapQuanta - hour.chargedQuanta));
  if (amount > 0) {
    await appendLedgerEntry(tx, {
      tenantId: hour.tenantId,
      amountQuanta: -amount,
      description: `Server ${hour.serverId}, hour from ${hour.from}${suffix === '' ? '' : ', resized'}`,
      metadata: {
        source: 'server_hours',
        reference: `${hour.serverId}:${hour.from}${suffix}`,
        server_id: hour.serverId,
      },
    });
  }
  return amount;
}

/**
 * Gives a server another plan at its price, in the transaction that ends the resize, with the server's row locked. Hours
 * that have begun are charged at the old price first; of the present one the difference is charged where the new price is
 * higher than each that the hour has had: it costs its highest price once. Nothing is given back for a lower price.
 */
export async function changePlan(tx: Queryable, serverId: number, actionId: number, plan: NewPlan) {
  for (;;) {
    const [hour] = await store.lockDueHours(tx, { afterServerId: 0, limit: 1, serverId });
    if (hour === undefined) break;
    await chargeHour(tx, hour);
  }
  const hour = await store.findChargedHour(tx, serverId);
  await store.setPlan(tx, serverId, plan);
  const extra = plan.hourlyQuanta - (hour?.hourlyQuanta ?? 0);
  if (hour === null || extra <= 0) return;
  const capped = { ...hour, monthlyCapQuanta: plan.monthlyCapQuanta };
  await store.addToMonth(tx, hour, await enter(tx, capped, extra, `:resize-${actionId}`));
}
