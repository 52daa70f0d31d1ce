/** `/console/system/`: the state of operations itself. */

import type { FastifyRequest } from 'fastify';
import {
  type AttentionFacts,
  type AttentionItem,
  describeItem,
  findAttentionItems,
  notCounted,
  readAttentionFacts,
} from '#operations/attention/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import { type QueueState, readQueueState } from '#service-kit/jobs/index.ts';
import {
  banner,
  type Content,
  formatBytes,
  formatCount,
  formatDuration,
  type Html,
  pageHeader,
  refreshing,
  sendPage,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { type SystemState, systemSections } from '#service-kit/system/index.ts';
import { sendWantedFile } from '#service-kit/web/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

/** What concerns operations itself, not the servers and customers on it. */
const ownKinds: ReadonlySet<string> = new Set(['system', 'monitor_silent', 'limits_apart', 'webhooks_late']);

export function registerSystem(app: App, deps: Features): void {
  app.get('/system/', async (request, reply) => {
    const staff = request.staff!;
    const nowMs = deps.clock.nowMs();
    const [facts, state, jobs] = await Promise.all([
      readAttentionFacts(deps, staff.actor, nowMs),
      deps.system.read(),
      readQueueState(deps.db()),
    ]);
    const items = findAttentionItems({ ...facts, ...notCounted }, nowMs);
    const own = items.filter(({ kind }) => ownKinds.has(kind));
    const page = systemPage(request, { staff, items: own, facts, state, jobs });
    return sendWantedFile(request, reply, 'operations') ?? sendPage(reply, page);
  });
}

interface SystemPage {
  staff: Staff;
  items: readonly AttentionItem[];
  facts: Pick<AttentionFacts, 'webhooks' | 'waitingCharges' | 'oldestChargeMs'>;
  state: SystemState;
  jobs: QueueState;
}

/** What the loops do, by the names of their leases. */
const loopWork: Readonly<Record<string, string>> = {
  'metering.thresholds': 'mails that an allowance of API requests is used up',
  'operations-audit-retention': 'deletes audit entries of over a year ago',
  'operations-change-retention': 'deletes expired changes of servers',
  'operations-spoofing-retention': 'deletes expired records of spoofed traffic',
  'operations-finding-counts': 'counts findings for the overview',
  'operations-finding-retention': 'deletes expired findings',
  'operations-incident-retention': 'deletes expired incidents',
  'operations-live-retention': 'deletes expired live traffic',
  'operations-scan-requests': 'ends scan requests that no monitor fetched',
  'operations-scan-retention': 'deletes expired scans',
  'operations-traffic-retention': 'deletes expired traffic',
  'operations.attention': 'mails operators what needs attention',
  'operations.bandwidth_readings': 'reads the traffic counters of nodes',
  'operations.bandwidth_thresholds': 'tells accounts how much of their bandwidth pool is used',
  'operations.bandwidth_limits': 'limits the speed of accounts that chose it once their pool is used up',
  'operations.bandwidth_rollup': 'sums bandwidth by hour',
  'operations.billing_maintenance': 'charges hours and API requests, suspends for debt',
  'operations.idempotency_retention': 'forgets idempotency keys after 24 hours',
  'operations.orders': 'completes paid orders',
  'operations.drift': 'compares guests with what is sold',
  'operations.power_observer': 'reads the power state of servers',
  'operations.reconcile_charges': 'asks the gateway for results of charges',
  'operations.root_passwords': 'deletes root passwords that have expired',
  'webhooks.upkeep': 'fans events out to webhooks and deletes old deliveries',
};

function systemPage(request: FastifyRequest, page: SystemPage): Html {
  const { staff, items, state } = page;
  return consoleFrame(
    { staff, title: 'System', current: 'system' },
    refreshing({ id: 'system', url: '/console/system/', everySeconds: 15 }, [
      pageHeader({ title: 'System', state: stateOf(items) }),
      items.map((item) => {
        const { title, text } = describeItem(item);
        return banner({ tone: 'warn', title, text });
      }),
      figures(page),
      systemSections(request, state, (name) => loopWork[name] ?? ''),
    ]),
  );
}

function stateOf(items: readonly AttentionItem[]) {
  if (items.length === 0)
    return { tone: 'good' as const, text: 'All clear: every loop runs, and every disk has room.' };
  const text =
    items.length === 1 ? 'One problem needs attention.' : `${items.length} problems need attention.`;
  return { tone: 'warn' as const, text };
}

function figures({ jobs, facts: { webhooks, waitingCharges, oldestChargeMs }, state }: SystemPage): Content {
  const oldest = (count: number, seconds: number) =>
    count === 0 ? 'none waiting' : `the oldest for ${formatDuration(seconds)}`;
  return stats(
    stat({
      label: 'Jobs due',
      value: formatCount(jobs.due),
      tone: jobs.oldestSeconds > 300 ? 'warn' : 'neutral',
      source: oldest(jobs.due, jobs.oldestSeconds),
    }),
    stat({
      label: 'Webhook deliveries pending',
      href: '/console/webhooks/',
      value: formatCount(webhooks.pending),
      source: oldest(webhooks.pending, webhooks.oldestSeconds),
    }),
    stat({
      label: 'Charges unconfirmed',
      href: '/console/reconciliation/',
      value: formatCount(waitingCharges),
      source: oldest(waitingCharges, oldestChargeMs / 1000),
    }),
    stat({ label: 'Database', value: formatBytes(state.databaseBytes), source: 'on its disk' }),
  );
}
