import type { QueueHealth, Webhooks } from '#operations/webhooks/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  formatCount,
  formatDuration,
  type Html,
  pageHeader,
  sendPage,
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from './frame.ts';
import type { Staff } from './guard.ts';

/** Deliveries that wait longer than this lack workers or a database, not receivers. */
export const lateSeconds = 60;

/** `/console/webhooks/`: whether customers are told in time. */
export function registerWebhooks(app: App, deps: { webhooks: Webhooks }): void {
  app.get('/webhooks/', async (request, reply) => {
    const staff = request.staff!;
    return sendPage(reply, webhooksPage(staff, await deps.webhooks.readQueueHealth(staff.actor)));
  });
}

function webhooksPage(staff: Staff, health: QueueHealth): Html {
  const isLate = health.oldestSeconds > lateSeconds;
  return consoleFrame(
    { staff, title: 'Webhooks', current: 'webhooks', breadcrumb: [{ label: 'Webhooks' }] },
    [
      pageHeader({ title: 'Webhooks', state: stateOf(health, isLate) }),
      stats(
        stat({
          label: 'Waiting',
          value: formatCount(health.pending),
          unit: 'deliveries',
          source: 'also those between two attempts',
        }),
        stat({
          label: 'Longest overdue',
          value: formatDuration(health.oldestSeconds),
          tone: isLate ? 'bad' : 'good',
          source: 'since it should have been sent',
        }),
        stat({
          label: 'Failing endpoints',
          value: formatCount(health.failingEndpoints),
          tone: health.failingEndpoints > 0 ? 'warn' : 'neutral',
          source: 'their receivers do not take what we send',
        }),
        stat({ label: 'Endpoints', value: formatCount(health.endpoints), source: 'of all customers' }),
      ),
    ],
  );
}

function stateOf(health: QueueHealth, isLate: boolean): { tone: Tone; text: string } {
  if (isLate) {
    const late = formatDuration(health.oldestSeconds);
    return {
      tone: 'bad',
      text: `Deliveries are ${late} late: look at the log of operations for “webhooks”.`,
    };
  }
  if (health.failingEndpoints > 0)
    return {
      tone: 'warn',
      text: 'Sent in time; some receivers do not take what we send, which their owners see.',
    };
  return { tone: 'good', text: 'Everything is sent in time.' };
}
