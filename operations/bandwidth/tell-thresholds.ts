/** Tells accounts that have used half, 80 % or all of their pool, each share once, where more of it costs something. */
import { emit } from '#operations/events/index.ts';
import { listMailable } from '#operations/views/alert-mail-store.ts';
import { type AccountNearing, listNearing } from '#operations/views/bandwidth-store.ts';
import { enqueueJob, type JobHandler } from '#service-kit/jobs/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import { formatBytes, formatMoney, formatMonth, formatTime } from '#service-kit/pages/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
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

/** The mark moves in the transaction of the events and of the jobs that mail, so none is told twice or forgotten. */
async function tellOne(deps: Deps, terms: BandwidthTerms, account: AccountNearing): Promise<void> {
  const { tenantId } = account;
  await inTransaction(deps.db(), async (tx) => {
    const { usedBytes, allowanceBytes } = await computeMonth(tx, terms, account, await readNowMs(tx));
    const reached = thresholds.filter(
      (percent) => usedBytes > 0 && usedBytes * 100 >= percent * allowanceBytes,
    );
    const percent = reached.at(-1);
    const before = percent === undefined ? null : await store.noteTold(tx, tenantId, percent);
    if (percent === undefined || before === null) return;
    for (const threshold of reached)
      if (threshold > before)
        await emit(tx, { type: 'bandwidth.threshold', tenantId, period: terms.period, percent: threshold });
    const { period } = terms;
    const { whenUsedUp } = await store.findChoice(tx, tenantId, period);
    const beyond =
      whenUsedUp === 'limit'
        ? 'Once it is used up, the servers are limited in speed until the month ends, as you chose, and traffic beyond it is not charged.'
        : `Traffic beyond it costs ${formatMoney(terms.tbQuanta, account.currency)} per TB, charged once on ${formatTime(periodOf(period).endMs + arrivalDays * 86_400_000, 'day')}; attacks are not charged.`;
    await enqueueMails(tx, deps, {
      ...{ tenantId, period, about: `${percent}` },
      subject: `${percent} % of the bandwidth pool of ${account.name} is used`,
      text: `${account.name} has used ${formatBytes(usedBytes)} of its bandwidth pool of ${formatBytes(allowanceBytes)} in ${formatMonth(period)}. The pool grows until the month ends. ${beyond}`,
    });
  });
}

interface PoolMail {
  tenantId: number;
  period: string;
  /** What it is about: one mail for each in a month. */
  about: string;
  subject: string;
  text: string;
}

/** Mails the members of the account's organization, once the transaction is committed. */
export async function enqueueMails(tx: Queryable, { post }: Pick<Deps, 'post'>, mail: PoolMail) {
  if (!post.canSend) return;
  for (const { personId } of await listMailable(tx, mail.tenantId))
    await enqueueJob(tx, 'bandwidth.mail', { ...mail, personId });
}

/** A day of attempts, once a minute: a mail server may be away for long. */
const mailAttemptsMax = 1_440;

/** Sends what was queued to those who may still read it. A repeated mail has the same id, by which its reader drops it. */
export function mailJobs({ db, post, reporter }: Deps): Record<string, JobHandler> {
  return {
    'bandwidth.mail': {
      attemptsMax: mailAttemptsMax,
      async run({ payload }) {
        const { tenantId, personId, period, about, subject, text } = payload as PoolMail & {
          personId: number;
        };
        const reader = (await listMailable(db(), tenantId)).find((one) => one.personId === personId);
        if (reader === undefined) return;
        const fault = await post.send({
          ...{ to: reader.email, subject },
          text: `${text}\n\n${post.linkTo(`/client/billing/?tenant=${tenantId}`)}`,
          id: `bandwidth-${tenantId}-${period}-${about}-${personId}`,
        });
        if (fault !== null) throw new Error(fault);
      },
      async giveUp({ payload }, error) {
        reporter.warn('a mail was not sent', { subject: (payload as PoolMail).subject, error });
      },
    },
  };
}
