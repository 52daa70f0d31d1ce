/**
 * Books the hours of running orders against their accounts' credit.
 *
 * An hour is charged when it begins, up to the plan's cap for the UTC month. The reference of an entry names server and
 * hour, so a tick that is repeated, or run by two processes, charges nothing twice; hours missed while the program was
 * down are made up for.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { bookEntry } from '#operations/billing/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
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

/** The loop that does it every minute, on one of the replicas. */
export function createServerHoursLoop(deps: {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.server_hours',
    intervalMs: 60_000,
    ttlSeconds: 120,
    ...deps,
    async run() {
      const booked = await chargeServerHours(deps.db());
      if (booked > 0) deps.reporter.debug('server hours charged', { booked });
    },
  });
}
