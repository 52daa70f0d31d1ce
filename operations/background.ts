/** The background work of operations: job workers and leased loops, each of which any number of replicas may run. */
import type { Part } from '#common/lifecycle/index.ts';
import { createReadingLoop, createRollupLoop } from '#operations/bandwidth/index.ts';
import { createBillingMaintenance } from '#operations/billing-maintenance/index.ts';
import { destroyNoticeJobs } from '#operations/destroy-notices/index.ts';
import { createIdempotencyRetention } from '#operations/idempotency/index.ts';
import { createUsageThresholdLoop } from '#operations/metering/index.ts';
import { createOrderLoop, createPasswordClearing } from '#operations/ordering/index.ts';
import { createReconciliationLoop } from '#operations/payments/index.ts';
import { createTrafficRetention } from '#operations/protect/index.ts';
import { createPowerObserver } from '#operations/servers/index.ts';
import { createWebhookSender, createWebhookUpkeep } from '#operations/webhooks/index.ts';
import { createAuditRetention } from '#service-kit/audit/index.ts';
import { createJobRunner, type JobRunner } from '#service-kit/jobs/index.ts';
import type { Features } from './features.ts';

/** Servers that are worked on at a time in one process. */
const serverWorkers = 4;
/** A killed worker's job is taken up again after this long; no step of a job takes nearly as much. */
const claimSeconds = 30;

export interface Background {
  /** Do the durable jobs of the features. */
  workers: readonly JobRunner[];
  /** Workers and loops, in the order in which they start. */
  parts: readonly Part[];
}

export function createBackground(features: Features): Background {
  const { settings, db, clock, reporter } = features;
  const loop = { db, clock, reporter };
  const shared = { ...loop, claimSeconds };
  const workers = Array.from({ length: serverWorkers }, () =>
    createJobRunner({ ...shared, handlers: features.jobHandlers }),
  );
  for (const worker of workers) features.onWork(() => worker.wake());
  const notices: Part[] = [];
  if (settings.noticeUrl !== null && settings.noticeSecret !== null) {
    const monitor = {
      url: settings.noticeUrl,
      secret: settings.noticeSecret,
      allowsInsecureHttp: settings.allowInsecureHttp,
    };
    // A worker of their own: a monitor that doesn't answer must not keep servers waiting.
    notices.push(createJobRunner({ ...shared, handlers: destroyNoticeJobs({ ...loop, monitor }) }));
  }
  const parts = [
    ...workers,
    ...notices,
    createBillingMaintenance({ ...features, ...loop }),
    createOrderLoop(features.orderingDeps),
    createReconciliationLoop({ ...features.paymentsDeps, ...loop }),
    createPowerObserver({ ...loop, ...features }),
    settings.bandwidthSource === 'hypervisor'
      ? createReadingLoop({ ...loop, ...features })
      : createRollupLoop(loop),
    createIdempotencyRetention(loop),
    createPasswordClearing(loop),
    createTrafficRetention(loop),
    createAuditRetention({ ...loop, name: 'operations-audit-retention' }),
    createWebhookSender({
      ...loop,
      secrets: features.secrets,
      rules: { allowPrivate: settings.webhookPrivateTargets },
    }),
    createUsageThresholdLoop({ ...loop, includedPerMonth: settings.includedPerMonth }),
    createWebhookUpkeep(loop),
  ];
  return { workers, parts };
}
