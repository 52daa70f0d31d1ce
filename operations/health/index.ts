/**
 * Metrics of operations: what waits, what fails, and how long requests take. Series are bounded: none is named after a
 * customer, a server or a node.
 */
import type { Clock } from '#common/clock/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { type Clusters, isAway } from '#operations/clusters/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { Webhooks } from '#operations/webhooks/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { readQueueState } from '#service-kit/jobs/index.ts';
import type { Limits } from '#service-kit/limits/index.ts';
import { createMeters, type Meters, meterRequests } from '#service-kit/metrics/index.ts';
import type { Database, Queryable } from '#service-kit/postgres/index.ts';
import { createSystemGauges, type System } from '#service-kit/system/index.ts';

interface OperationsMetersDeps {
  database: Pick<Database, 'pool'>;
  db: () => Queryable;
  clock: Clock;
  clusters: Pick<Clusters, 'listNodes'>;
  limits: Pick<Limits, 'findProblem'>;
  payments: Pick<Payments, 'listReconciled'>;
  servers: Pick<Servers, 'countByStatus'>;
  system: Pick<System, 'read' | 'checkWrites'>;
  webhooks: Pick<Webhooks, 'readQueueHealth'>;
}

/** More charges than these that wait for their gateway are counted as these. */
const chargesMax = 1_000;

type OperationsState = Awaited<ReturnType<typeof readState>>;

export function createOperationsMeters(deps: OperationsMetersDeps) {
  const meters = createMeters('svc_operations_');
  const gauges = createGauges(meters);
  const showSystem = createSystemGauges(meters);
  const limitsApart = meters.gauge(
    'limits_apart',
    '1 while this process counts limits alone that all should count together.',
  );
  return {
    contentType: meters.contentType,
    /** Times the requests of this server. */
    watch: (app: App) => meterRequests(app, meters),
    /** All metrics as text. Without an answer of the database, the metrics that need it are left out. */
    render(): Promise<string> {
      limitsApart.set(deps.limits.findProblem() === null ? 0 : 1);
      return meters.render(
        deps.database.pool,
        () => readState(deps),
        (state) => {
          show(gauges, state);
          showSystem(state?.system ?? null);
        },
      );
    },
  };
}

async function readState(deps: OperationsMetersDeps) {
  const nowMs = deps.clock.nowMs();
  const [jobs, webhooks, servers, nodes, charges, system, writeProblem] = await Promise.all([
    readQueueState(deps.db()),
    deps.webhooks.readQueueHealth(systemActor),
    deps.servers.countByStatus(systemActor, null),
    deps.clusters.listNodes(systemActor, null),
    deps.payments.listReconciled(systemActor, chargesMax),
    deps.system.read(),
    deps.system.checkWrites(),
  ]);
  const away = nodes.filter((node) => isAway(node, nowMs)).length;
  const waiting = charges.filter(({ state }) => state === 'unconfirmed');
  const oldestMs = Math.min(nowMs, ...waiting.map(({ createdAt }) => createdAt.getTime()));
  return {
    jobs,
    webhooks,
    servers,
    nodes: { away, answering: nodes.length - away },
    charges: { unconfirmed: waiting.length, oldestSeconds: (nowMs - oldestMs) / 1000 },
    system: { ...system, writeProblem },
  };
}

function createGauges({ gauge }: Meters) {
  return {
    jobsDue: gauge('jobs_due', 'Jobs whose time has come and that are not finished.'),
    jobsOldest: gauge('jobs_oldest_due_seconds', 'For how long the oldest of them has been due.'),
    jobsFailing: gauge('jobs_failing', 'Unfinished jobs whose last attempt failed.'),
    webhooksPending: gauge(
      'webhook_pending_deliveries',
      'Events and webhook deliveries on their way to receivers.',
    ),
    webhooksOldest: gauge('webhook_oldest_pending_seconds', 'Age of the oldest of them that is due.'),
    webhooksFailing: gauge('webhook_failing_endpoints', 'Webhook endpoints whose receivers fail.'),
    charges: gauge(
      'payment_unconfirmed_charges',
      `Charges of which the gateway has not said how they ended, up to ${chargesMax}.`,
    ),
    chargesOldest: gauge('payment_oldest_unconfirmed_seconds', 'Age of the oldest of them.'),
    servers: gauge('servers', 'Servers by status.', ['status']),
    nodes: gauge('nodes', 'Hypervisors by whether they answer.', ['state']),
  };
}

function show(gauges: ReturnType<typeof createGauges>, state: OperationsState | null): void {
  for (const gauge of Object.values(gauges)) gauge.reset();
  if (state === null) {
    const { servers: _, nodes: __, ...plain } = gauges;
    for (const gauge of Object.values(plain)) gauge.remove();
    return;
  }
  const { jobs, webhooks, servers, nodes, charges } = state;
  gauges.jobsDue.set(jobs.due);
  gauges.jobsOldest.set(jobs.oldestSeconds);
  gauges.jobsFailing.set(jobs.failing);
  gauges.webhooksPending.set(webhooks.pending);
  gauges.webhooksOldest.set(webhooks.oldestSeconds);
  gauges.webhooksFailing.set(webhooks.failingEndpoints);
  gauges.charges.set(charges.unconfirmed);
  gauges.chargesOldest.set(charges.oldestSeconds);
  for (const [status, count] of servers) gauges.servers.set({ status }, count);
  gauges.nodes.set({ state: 'away' }, nodes.away);
  gauges.nodes.set({ state: 'answering' }, nodes.answering);
}
