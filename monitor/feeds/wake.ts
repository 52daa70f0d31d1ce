/** Starts a run of a feed when what it sends changed, in this or another process: the database says so at commit. */
import { setTimeout } from 'node:timers/promises';
import type { Part } from '#common/lifecycle/index.ts';
import type { LeasedLoop } from '#service-kit/leases/index.ts';
import { createNotifications, type NotificationsOptions } from '#service-kit/notifications/index.ts';

/** `incidents`: an incident changed. `targets`: operations may list other allocations now. */
export type WakeTopic = 'incidents' | 'targets';

/**
 * The listening connection is looked after this often, which wakes the loop too; its interval serves what is lost between.
 * Incidents are few and urgent. A run for targets visits every allocation.
 */
const lookMs: Readonly<Record<WakeTopic, number>> = { incidents: 30_000, targets: 600_000 };
const retryMs = 1_000;

export function createWake(
  pool: NotificationsOptions['pool'],
  topic: WakeTopic,
  loop: Pick<LeasedLoop, 'wake'>,
): Part {
  const notifications = createNotifications({ pool, channel: 'svc_monitor' });
  let stopping = new AbortController();
  let finished: Promise<void> = Promise.resolve();

  /** `onListening` is called when the database was asked to say what changes, or can't be asked now. */
  async function listen(signal: AbortSignal, onListening: () => void): Promise<void> {
    while (!signal.aborted) {
      // Of targets, the first look only says that nothing was heard yet.
      let isHeard = topic === 'incidents';
      await notifications.waitFor(
        { topic, timeoutMs: lookMs[topic], signal },
        async () => {
          onListening();
          if (isHeard) loop.wake();
          isHeard = true;
        },
        () => false,
      );
      await setTimeout(signal.aborted ? 0 : retryMs, undefined, { signal }).catch(() => {});
    }
  }

  return {
    name: topic === 'incidents' ? 'incident wake' : 'target wake',
    async start() {
      stopping = new AbortController();
      await notifications.start();
      // A loop that is started after this misses no change.
      await new Promise<void>((done) => {
        finished = listen(stopping.signal, done);
      });
    },
    async stop() {
      stopping.abort();
      // The wait gives its connection back; stopped before, it would open another one.
      await finished;
      await notifications.stop();
    },
  };
}
