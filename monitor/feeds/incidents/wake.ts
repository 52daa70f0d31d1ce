/** Starts a run of the feed when an incident changed, in this or another process: the database says so at commit. */
import { setTimeout } from 'node:timers/promises';
import type { Part } from '#common/lifecycle/index.ts';
import type { LeasedLoop } from '#service-kit/leases/index.ts';
import { createNotifications, type NotificationsOptions } from '#service-kit/notifications/index.ts';

/** The listening connection is looked after this often; the loop's interval serves what is lost between. */
const lookMs = 30_000;
const retryMs = 1_000;

export function createIncidentWake(pool: NotificationsOptions['pool'], loop: Pick<LeasedLoop, 'wake'>): Part {
  const notifications = createNotifications({ pool, channel: 'svc_monitor' });
  let stopping = new AbortController();
  let finished: Promise<void> = Promise.resolve();

  async function listen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await notifications.waitFor(
        { topic: 'incidents', timeoutMs: lookMs, signal },
        async () => loop.wake(),
        () => false,
      );
      await setTimeout(signal.aborted ? 0 : retryMs, undefined, { signal }).catch(() => {});
    }
  }

  return {
    name: 'incident wake',
    async start() {
      stopping = new AbortController();
      await notifications.start();
      finished = listen(stopping.signal);
    },
    async stop() {
      stopping.abort();
      // The wait gives its connection back; stopped before, it would open another one.
      await finished;
      await notifications.stop();
    },
  };
}
