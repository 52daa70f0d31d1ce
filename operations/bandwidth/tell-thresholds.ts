/** Tells accounts that have used half, 80 % or all of their pool, each share once, where more of it costs something. */
import { emit } from '#operations/events/index.ts';
import { listMailable } from '#operations/views/alert-mail-store.ts';
import { type AccountNearing, listNearing } from '#operations/views/bandwidth-store.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import { formatBytes, formatMoney, formatMonth, formatTime } from '#service-kit/pages/index.ts';
import { readNowMs } from '#service-kit/postgres/index.ts';
import type { BandwidthDeps } from './index.ts';
import { type BandwidthTerms, computeMonth } from './overage.ts';
import { arrivalDays } from './pool.ts';
import { periodOf } from './read-bandwidth.ts';
import * as store from './store.ts';

const thresholds = [50, 80, 100] as const;

type Deps = Pick<BandwidthDeps, 'db' | 'clock' | 'reporter' | 'post'>;

export function createThresholdLoop(deps: Deps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.bandwidth_thresholds',
    intervalMs: 300_000,
    ttlSeconds: 120,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(_lease, renew, signal) {
      const terms = await store.findTerms(deps.db());
      if (terms === null || terms.tbQuanta === 0) return;
      const { poolCounts, rules } = terms;
      const nearing = { poolCounts, leastPoolBytes: rules.baseBytes, thresholds };
      for (const account of await listNearing(deps.db(), nearing)) {
        if (signal.aborted || !(await renew())) return;
        await tellOne(deps, terms, account);
      }
    },
  });
}

/** The mark moves in the transaction of the events, so none is told twice or forgotten; the mail follows once they are told. */
async function tellOne({ db, post }: Deps, terms: BandwidthTerms, account: AccountNearing): Promise<void> {
  const { tenantId } = account;
  const told = await db()
    .transaction()
    .execute(async (tx) => {
      const { usedBytes, allowanceBytes } = await computeMonth(tx, terms, account, await readNowMs(tx));
      const reached = thresholds.filter(
        (percent) => usedBytes > 0 && usedBytes * 100 >= percent * allowanceBytes,
      );
      const percent = reached.at(-1);
      const before = percent === undefined ? null : await store.noteTold(tx, tenantId, percent);
      if (percent === undefined || before === null) return null;
      for (const threshold of reached)
        if (threshold > before)
          await emit(tx, {
            type: 'bandwidth.threshold',
            tenantId,
            period: terms.period,
            percent: threshold,
          });
      return { percent, usedBytes, allowanceBytes };
    });
  if (told === null || !post.canSend) return;
  const { percent, usedBytes, allowanceBytes } = told;
  const chargedAt = periodOf(terms.period).endMs + arrivalDays * 86_400_000;
  const text = `${account.name} has used ${formatBytes(usedBytes)} of its bandwidth pool of ${formatBytes(allowanceBytes)} in ${formatMonth(terms.period)}. The pool grows until the month ends. Traffic beyond it costs ${formatMoney(terms.tbQuanta, account.currency)} per TB, charged once on ${formatTime(chargedAt, 'day')}; attacks are not charged.

${post.linkTo(`/client/billing/?tenant=${tenantId}`)}`;
  for (const to of await listMailable(db(), tenantId))
    post.sendLater(async () => ({
      to,
      subject: `${percent} % of the bandwidth pool of ${account.name} is used`,
      text,
    }));
}
