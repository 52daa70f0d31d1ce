/** The background work of operations: the workers that all features share, and what each feature runs beside its calls. */
import type { Part } from '#common/lifecycle/index.ts';
import { createAuditRetention } from '#service-kit/audit/index.ts';
import { createJobRunner, type FeatureWork, type JobRunner } from '#service-kit/jobs/index.ts';
import type { Features } from './features.ts';

/** Servers that are worked on at a time in one process. */
const serverWorkers = 4;
/** A killed worker's job is taken up again after this long. */
const claimSeconds = 30;

export interface Background {
  /** Do the durable jobs of the features; the role `jobs`. */
  workers: readonly JobRunner[];
  /** What features run by themselves, in the order in which it starts; the role `loops`. */
  loops: readonly Part[];
}

/** Features with background work, in the order in which it starts; a new one is added here. */
function listWorkers(features: Features): readonly { work: FeatureWork }[] {
  return [
    features.destroyNotices,
    features.billingMaintenance,
    features.ordering,
    features.payments,
    features.clusters,
    features.servers,
    features.networks,
    features.firewalls,
    features.reverseDns,
    features.guards,
    features.serverChanges,
    features.bandwidth,
    features.idempotency,
    features.protectIncidents,
    features.protectTraffic,
    features.protectLive,
    features.protectScans,
    features.protectFindings,
    features.webhooks,
    features.metering,
    features.attention,
  ];
}

export function createBackground(features: Features): Background {
  const { db, clock, reporter } = features;
  const work = listWorkers(features).map((feature) => feature.work);
  const handlers = Object.assign({}, ...work.map(({ jobHandlers }) => jobHandlers));
  const workers = Array.from({ length: serverWorkers }, () =>
    createJobRunner({ db, clock, reporter, claimSeconds, handlers }),
  );
  for (const worker of workers) features.onWork(() => worker.wake());
  const loops = [
    ...work.flatMap((one) => one.parts ?? []),
    createAuditRetention({ db, clock, reporter, name: 'operations-audit-retention' }),
  ];
  return { workers, loops };
}
