/**
 * Books the hours of running orders against their accounts' credit.
 *
 * An hour is charged when it begins, up to the plan's cap for the UTC month. The reference of an entry names server and
 * hour, so a tick that is repeated, or run by two processes, charges nothing twice; hours missed while the program was
 * down are made up for.
 */
import { bookEntry } from '#operations/billing/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

const batchMax = 200;

/** Charges every server-hour that has begun; returns how many were booked. */
export async function chargeServerHours(db: Queryable): Promise<number> {
  let booked = 0;
  for (;;) {
    const charged = await db.transaction().execute(chargeBatch);
    booked += charged;
    if (charged === 0) return booked;
  }
}

async function chargeBatch(tx: Queryable): Promise<number> {
  const due = await store.lockDueHours(tx, batchMax);
  for (const hour of due) {
    const amount = Math.min(hour.hourlyQuanta, Math.max(0, hour.monthlyCapQuanta - hour.chargedQuanta));
    if (amount > 0) {
      await bookEntry(tx, {
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
  return due.length;
}
