/**
 * Accounts that chose a speed limit instead of a charge: once the pool of the month is used up their servers are limited until it ends, or
 * until another choice. The pool grows meanwhile, so who is limited stays it: a limit that came and went would be no help.
 */
import {
  type Actor,
  forbidden,
  lockTenantStatus,
  reachesTenant,
  requireWriter,
  systemJob,
} from '#operations/accounts/index.ts';
import { findNodeOfServer } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName } from '#operations/hypervisors/index.ts';
import { type AccountNearing, listUsedUp, type UsingAccount } from '#operations/views/bandwidth-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob, type JobHandler } from '#service-kit/jobs/index.ts';
import { createLeasedLoop, ifHeld, type LeasedLoop } from '#service-kit/leases/index.ts';
import { formatBytes, formatMonth, formatTime } from '#service-kit/pages/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { BandwidthDeps } from './index.ts';
import { type BandwidthTerms, computeMonth } from './overage.ts';
import { freeBytesOf } from './pool.ts';
import { findOfferedLimit, invalidField, periodOf } from './read-bandwidth.ts';
import * as store from './store.ts';
import { enqueueMails } from './tell-thresholds.ts';

const speedJob = 'bandwidth.limit_speed';

/** See `Bandwidth.chooseWhenUsedUp`. */
export async function chooseWhenUsedUp(
  deps: BandwidthDeps,
  actor: Actor,
  account: UsingAccount,
  whenUsedUp: store.WhenUsedUp,
): Promise<void> {
  const { tenantId } = account;
  if (!reachesTenant(actor, tenantId)) throw forbidden('This account is not yours.');
  requireWriter(actor);
  if (whenUsedUp === 'limit' && (await findOfferedLimit(deps)) === 0)
    throw invalidField('when_used_up', 'must be `charge`: this installation does not limit the speed');
  await inTransaction(deps.db(), async (tx) => {
    await lockTenantStatus(tx, tenantId);
    const terms = await store.findTerms(tx);
    const nowMs = await readNowMs(tx);
    const period = terms?.period ?? new Date(nowMs).toISOString().slice(0, 7);
    const before = await store.findChoice(tx, tenantId, period);
    if (before.whenUsedUp === whenUsedUp) return;
    const month = terms === null ? null : await computeMonth(tx, terms, account, nowMs);
    const sinceBytes = month === null ? 0 : Math.max(0, month.usedBytes - month.allowanceBytes);
    await store.putChoice(tx, tenantId, {
      ...{ whenUsedUp, sinceBytes },
      freeBytes: freeBytesOf(sinceBytes, before),
    });
    await record(tx, actor, {
      operation: 'bandwidth.choose_when_used_up',
      subject: { kind: 'tenant', id: tenantId },
      tenantId,
      before: { whenUsedUp: before.whenUsedUp },
      after: { whenUsedUp },
    });
  });
}

/** Limits accounts and sees to the speeds of servers, by their plan and their account, every minute. */
export function createLimitLoop(deps: BandwidthDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.bandwidth_limits',
    intervalMs: 60_000,
    ttlSeconds: 120,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(lease, renew, signal) {
      const terms = deps.limitMbit === 0 ? null : await store.findTerms(deps.db());
      if (terms !== null && terms.tbQuanta > 0) {
        const { poolCounts, rules } = terms;
        for (const account of await listUsedUp(deps.db(), { poolCounts, leastPoolBytes: rules.baseBytes })) {
          if (signal.aborted || !(await renew())) return;
          await limitOne(deps, terms, account);
        }
      }
      await ifHeld(deps.db(), lease, async (tx) => {
        for (const serverId of await store.askForSpeeds(tx, deps.limitMbit))
          await enqueueJob(tx, speedJob, { serverId });
      });
    },
  });
}

async function limitOne(deps: BandwidthDeps, terms: BandwidthTerms, account: AccountNearing): Promise<void> {
  const { tenantId, name } = account;
  const { period } = terms;
  await inTransaction(deps.db(), async (tx: Queryable) => {
    await lockTenantStatus(tx, tenantId);
    if ((await store.findChoice(tx, tenantId, period)).whenUsedUp !== 'limit') return;
    const { usedBytes, allowanceBytes } = await computeMonth(tx, terms, account, await readNowMs(tx));
    if (usedBytes < allowanceBytes || !(await store.noteLimited(tx, tenantId))) return;
    await emit(tx, { type: 'bandwidth.limited', tenantId, period, percent: 100 });
    await record(tx, systemJob('bandwidth limit'), {
      operation: 'bandwidth.limit',
      subject: { kind: 'tenant', id: tenantId, name },
      tenantId,
      after: { mbit: deps.limitMbit, period },
    });
    await enqueueMails(tx, deps, {
      ...{ tenantId, period, about: 'limited' },
      subject: `The servers of ${name} are limited to ${deps.limitMbit} Mbit/s`,
      text: `${name} has used ${formatBytes(usedBytes)} of its bandwidth pool of ${formatBytes(allowanceBytes)} in ${formatMonth(period)}. As you chose, each of its servers is limited to ${deps.limitMbit} Mbit/s until ${formatTime(periodOf(period).endMs, 'day')}, and traffic beyond the pool is not charged. You can end the limit at any time: traffic beyond the pool is charged from then on.`,
    });
  });
}

/** Brings a server's speed in line with what is wanted when the job runs. */
export function speedJobs(deps: BandwidthDeps): Record<string, JobHandler> {
  const serverIdOf = (payload: unknown) => (payload as { serverId: number }).serverId;
  return {
    [speedJob]: {
      attemptsMax: 5,
      async run({ payload }) {
        const serverId = serverIdOf(payload);
        const mbit = await store.findWantedSpeed(deps.db(), serverId, deps.limitMbit);
        const node = await findNodeOfServer(deps.db(), serverId);
        if (mbit === undefined || node === null) return;
        const driver = deps.hypervisors.of(node);
        // A node that was added after the choice may not be able to: its servers are neither limited nor charged.
        if (!driver.capabilities.includes('speed_limit')) return;
        await driver.limitSpeed(guestName(serverId), mbit);
        await store.noteSpeed(deps.db(), serverId, mbit);
      },
      // The loop asks again.
      async giveUp({ payload }, error) {
        deps.reporter.error('the speed of a server could not be set', { server: serverIdOf(payload), error });
      },
    },
  };
}
