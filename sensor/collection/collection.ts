/** The part that runs all captures of a sensor and commits their minutes. */
import { type Clock, systemClock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type SensorPlan, suitMonitor } from '#sensor/plan/index.ts';
import type { Spool } from '#sensor/spool/index.ts';
import type { CaptureSpec } from './capture-spec.ts';
import { createCaptureThread } from './capture-thread.ts';
import { createMinuteCollector } from './minute-collector.ts';

const tickMs = 500;

export interface CollectionOptions {
  captures: readonly CaptureSpec[];
  spool: Spool;
  reporter: Reporter;
  clock?: Clock;
  /** Called when an upload was committed. */
  onCommitted(): void;
}

export interface Collection extends Part {
  /** Takes a plan: its addresses are local from now on. Nothing is counted before the first one. */
  follow(plan: SensorPlan): void;
}

/** Makes the part; it opens no interface before `start`. */
export function createCollection(options: CollectionOptions): Collection {
  const { spool, reporter } = options;
  const clock = options.clock ?? systemClock;
  const stopping = new AbortController();
  let plan: SensorPlan | null = null;
  let ticking: Promise<void> = Promise.resolve();
  const collector = createMinuteCollector({
    captures: options.captures.map((spec) => spec.name),
    spool,
    reporter,
    onCommitted: options.onCommitted,
  });
  const threads = options.captures.map((spec) =>
    createCaptureThread({
      spec,
      clock,
      reporter,
      onListening: (sinceMs) => {
        collector.listening(spec.name, sinceMs);
        reporter.info('capture listens', { capture: spec.name });
      },
      onFailed: () => collector.failed(spec.name),
      onReports: (reports) => {
        for (const { minute, reason } of reports) {
          warnOfLoss(spec.name, minute.totals.kernelDropped);
          collector.report(plan ? suitMonitor(minute, plan) : minute, reason);
        }
      },
    }),
  );

  function warnOfLoss(capture: string, kernelDropped: number): void {
    if (kernelDropped === 0) return;
    reporter.warn('the kernel dropped packets for want of room in the ring', {
      capture,
      packets: kernelDropped,
    });
  }

  async function tick(): Promise<void> {
    while (!stopping.signal.aborted) {
      collector.tick(clock.nowMs());
      await clock.wait(tickMs, stopping.signal);
    }
  }

  return {
    name: 'collection',
    async start() {
      collector.start(clock.nowMs());
      const opened = await Promise.allSettled(threads.map((thread) => thread.start()));
      const failed = opened.find((one) => one.status === 'rejected');
      if (failed) {
        await Promise.all(threads.map((thread) => thread.stop()));
        throw failed.reason;
      }
      ticking = tick();
    },
    async stop() {
      stopping.abort();
      await ticking;
      await Promise.all(threads.map((thread) => thread.stop()));
      collector.finish();
    },
    follow(next) {
      plan = next;
      const local = { prefixes: next.localPrefixes, addresses: next.protectedAddresses };
      for (const thread of threads) thread.setLocal(local);
    },
  };
}
