import type { Features } from '#operations/features.ts';
import type { FailingEndpoint, QueueHealth } from '#operations/views/delivery-store.ts';
import { isQueueLate } from '#operations/webhooks/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  cellColumn,
  code,
  codeColumn,
  formatCount,
  formatDuration,
  type Html,
  pageHeader,
  section,
  sendPage,
  stat,
  stats,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { countColumn, linkColumn } from '#service-kit/web/index.ts';
import { type ApiFacts, createApiReference } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

const failingMax = 50;

/** `/console/webhooks/`: whether customers are told in time. */
export function registerWebhooks(app: App, deps: Features): void {
  app.get('/webhooks/', async (request, reply) => {
    const staff = request.staff!;
    const [health, failing] = await Promise.all([
      deps.webhooks.readQueueHealth(staff.actor),
      deps.webhooks.listFailing(staff.actor, failingMax),
    ]);
    return sendPage(reply, webhooksPage(staff, health, failing, deps.clock.nowMs()));
  });
}

function webhooksPage(staff: Staff, health: QueueHealth, failing: readonly FailingEndpoint[], nowMs: number) {
  const isLate = isQueueLate(health);
  return consoleFrame({ staff, title: 'Webhooks', current: 'webhooks' }, [
    pageHeader({ title: 'Webhooks', state: stateOf(health, isLate) }),
    stats(
      stat({
        label: 'Waiting',
        value: formatCount(health.pending),
        unit: 'deliveries',
        source: 'including retries',
      }),
      stat({
        label: 'Longest overdue',
        value: formatDuration(health.oldestSeconds),
        tone: isLate ? 'bad' : 'good',
        source: 'since it was due',
      }),
      stat({
        label: 'Failing endpoints',
        value: formatCount(health.failingEndpoints),
        tone: health.failingEndpoints > 0 ? 'warn' : 'neutral',
        source: 'deliveries are failing',
      }),
      stat({ label: 'Endpoints', value: formatCount(health.endpoints), source: 'of all customers' }),
    ),
    section(
      {
        title: 'Failing endpoints',
        description: `The ${failingMax} endpoints that have failed longest. Their owners see each attempt in the portal and can send it again.`,
      },
      failingTable(failing, nowMs),
    ),
  ]);
}

function failingTable(failing: readonly FailingEndpoint[], nowMs: number): Html {
  return table<FailingEndpoint>({
    caption: 'Failing endpoints',
    card: { line: ['host', 'since'] },
    columns: [
      linkColumn('customer', 'Customer', (endpoint) => [
        endpoint.organizationName,
        `/console/customers/${endpoint.tenantId}`,
      ]),
      codeColumn('host', 'Receiver', (endpoint) => code(endpoint.host)),
      cellColumn('since', 'Failing since', (endpoint) => age(endpoint.failingSince.getTime(), nowMs)),
      countColumn('count', 'Failures in a row', (endpoint) => endpoint.consecutiveFailures),
      {
        key: 'last',
        header: 'Last answer',
        kind: 'prose',
        cell: (endpoint) =>
          endpoint.lastError ??
          (endpoint.lastStatusCode === null ? 'none' : `HTTP ${endpoint.lastStatusCode}`),
      },
    ],
    rows: failing,
    empty: { title: 'No failing endpoints', text: 'Endpoints with failing deliveries appear here.' },
  });
}

function stateOf(health: QueueHealth, isLate: boolean): { tone: Tone; text: string } {
  if (isLate) {
    const late = formatDuration(health.oldestSeconds);
    return { tone: 'bad', text: `Deliveries are ${late} late. Check the operations log for “webhooks”.` };
  }
  if (health.failingEndpoints > 0)
    return { tone: 'warn', text: 'On time. Deliveries to some endpoints are failing; their owners see it.' };
  return { tone: 'good', text: 'All deliveries are on time.' };
}

/** The API reference beside the fleet's meter (API-1.S6): staff create no keys, so nothing here leads to creating one. */
export function registerApiDocs(app: App, deps: { apiFacts: ApiFacts }): void {
  const base = '/console/billing/usage/api/docs/';
  const reference = createApiReference({ base, facts: deps.apiFacts, createKeyHref: null });
  for (const { path, title, content } of reference) {
    const reached =
      path === '' ? [{ label: title }] : [{ label: 'API reference', href: base }, { label: title }];
    app.get(`/billing/usage/api/docs/${path}`, async (request, reply) =>
      sendPage(
        reply,
        consoleFrame({ staff: request.staff!, title, current: 'docs', breadcrumb: reached }, [
          pageHeader({ title }),
          await content(),
        ]),
      ),
    );
  }
}
