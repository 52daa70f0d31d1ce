import { describeError } from '#common/errors/index.ts';
import { deleteEventsOlderThan, takeUndispatched } from '#operations/events/index.ts';
import { type DueDelivery, nextDelivery, readQueueHealth } from '#operations/views/delivery-store.ts';
import { createLeasedLoop, type LeasedLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import { createOutboxSender, type OutboxSender } from '#service-kit/outbox/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import {
  type Outcome,
  postDelivery,
  type Resolve,
  resolveByDns,
  signDelivery,
  type TargetRules,
} from '#service-kit/webhooks/index.ts';
import * as queue from './queue-store.ts';
import * as store from './store.ts';
import { disableEndpoint, endpointSecret, formerSecret, insertDeliveries } from './store.ts';

export interface WebhookSenderDeps extends LoopDeps {
  secrets: Secrets;
  rules: TargetRules;
  /** For tests. */
  resolve?: Resolve;
  random?: () => number;
}

/** `drain` delivers what is due, until nothing is; for tests. */
export type WebhookSender = OutboxSender;

/** Pauses after a failed attempt, in seconds; after the last one the delivery has failed. */
export const retrySchedule = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;
/** Workers that one organization's endpoints hold at a time: fewer than one process has. */
const perOrganizationMax = 2;
const dispatchMax = 100;
/** A receiver that fails is left alone for this long, doubled with each failure. */
const restSeconds = { first: 5, max: 600 };

export function createWebhookSender(deps: WebhookSenderDeps, workers = 4): WebhookSender {
  return createOutboxSender(
    {
      name: 'webhooks',
      failure: 'webhooks can not be sent',
      table: 'webhook_endpoints',
      workers,
      async prepare() {
        await deps.secrets.ready();
        return (await dispatch(deps)) > 0;
      },
      claim: (db, claimSeconds) => queue.claimEndpoint(db, claimSeconds, perOrganizationMax),
      next: (db, endpoint) => nextDelivery(db, endpoint.id),
      attempt: (endpoint, delivery, signal) => attempt(deps, endpoint, delivery, signal),
    },
    deps,
  );
}

/** Decides on the deliveries of the oldest events; taking them and deciding is one transaction. */
async function dispatch(deps: WebhookSenderDeps): Promise<number> {
  return inTransaction(deps.db(), async (tx) => {
    const events = await takeUndispatched(tx, dispatchMax);
    if (events.length > 0) {
      await insertDeliveries(
        tx,
        events.map((event) => event.id),
      );
    }
    return events.length;
  });
}

/** One attempt; true when the receiver took it. */
async function attempt(
  deps: WebhookSenderDeps,
  endpoint: queue.ClaimedEndpoint,
  delivery: DueDelivery,
  signal: AbortSignal,
): Promise<boolean> {
  const { type, occurredAt, data } = delivery;
  const body = JSON.stringify({ type, timestamp: occurredAt.toISOString(), data });
  const startedMs = deps.clock.nowMs();
  const secrets = await openSecrets(deps, endpoint);
  const outcome: Outcome =
    secrets === null
      ? { statusCode: null, error: 'the signing secret can not be decrypted; rotate it' }
      : await postDelivery(
          endpoint.url,
          { headers: signDelivery(secrets, delivery.publicId, Math.floor(startedMs / 1000), body), body },
          { rules: deps.rules, resolve: deps.resolve ?? resolveByDns, signal },
        );
  // An attempt that our own stop cut short says nothing about the receiver; it is made again.
  if (signal.aborted && outcome.statusCode === null) return false;
  const result = {
    deliveryId: delivery.id,
    durationMs: Math.round(deps.clock.nowMs() - startedMs),
    ...outcome,
  };
  await inTransaction(deps.db(), async (tx) => {
    if (!(await queue.recordAttempt(tx, endpoint, result))) return;
    if (outcome.error === null) return queue.finishDelivery(tx, delivery.id, 'delivered');
    if (outcome.statusCode === 410) {
      await queue.finishDelivery(tx, delivery.id, 'failed');
      return disableEndpoint(tx, endpoint.id, 'gone');
    }
    await planNext(deps, tx, endpoint, delivery);
  });
  endpoint.consecutiveFailures = outcome.error === null ? 0 : endpoint.consecutiveFailures + 1;
  return outcome.error === null;
}

/** Null where the stored secret does not open: that endpoint alone fails, and says so in its log. */
async function openSecrets(
  deps: WebhookSenderDeps,
  { id, sealedSecret, sealedPreviousSecret }: queue.ClaimedEndpoint,
): Promise<Buffer[] | null> {
  try {
    const secret = await deps.secrets.open(deps.db(), endpointSecret, id, sealedSecret);
    if (sealedPreviousSecret === null) return [secret];
    return [secret, await deps.secrets.open(deps.db(), formerSecret, id, sealedPreviousSecret)];
  } catch (error) {
    deps.reporter.error('a webhook can not be signed', { endpoint: id, error: describeError(error) });
    return null;
  }
}

async function planNext(
  deps: WebhookSenderDeps,
  tx: Queryable,
  endpoint: queue.ClaimedEndpoint,
  delivery: DueDelivery,
): Promise<void> {
  const spread = 0.8 + 0.4 * (deps.random ?? Math.random)();
  const rest = Math.min(restSeconds.max, restSeconds.first * 2 ** Math.min(endpoint.consecutiveFailures, 10));
  const pause = retrySchedule[delivery.step];
  if (pause === undefined) await queue.finishDelivery(tx, delivery.id, 'failed');
  await queue.postpone(tx, endpoint.id, delivery.id, Math.max(pause ?? 0, rest) * spread, rest * spread);
}

const keepDays = 30;
const lateSeconds = 900;

/** Every few minutes: says when deliveries wait too long for a worker, and forgets what is older than a month, and secrets that sign no more. */
export function createWebhookUpkeep(deps: LoopDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'webhooks.upkeep',
    intervalMs: 300_000,
    ttlSeconds: 120,
    ...deps,
    async run() {
      const { pending, oldestSeconds, failingEndpoints } = await readQueueHealth(deps.db());
      if (oldestSeconds > lateSeconds)
        deps.reporter.warn('webhooks are late', {
          pending,
          oldest_seconds: Math.round(oldestSeconds),
          failing_endpoints: failingEndpoints,
        });
      await store.deleteFormerSecrets(deps.db());
      await deleteEventsOlderThan(deps.db(), keepDays);
    },
  });
}
