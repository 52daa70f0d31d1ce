/**
 * The loop that applies uploads. Sensors are divided into shares; a worker takes the lease of a share when there is
 * work in it, and keeps it while it works, so an idle inbox writes nothing. Uploads of a share are applied in the order
 * they came; one that fails waits its turn again and lets the others pass.
 */
import { randomUUID } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { InboxDeps } from './index.ts';
import { createShareWorker, shares } from './share-worker.ts';
import { findDueShares, pruneUploads } from './store.ts';

const pollMs = 1_000;
const pruneMs = 3_600_000;

export interface InboxWorker extends Part {
  wake(): void;
  drain(): Promise<void>;
}

export function createInboxWorker(deps: InboxDeps): InboxWorker {
  const holder = `${process.pid}-${randomUUID()}`;
  const workers = Array.from({ length: shares }, (_, share) => createShareWorker(deps, share, holder));
  let stopping = new AbortController();
  let nap = new AbortController();
  let finished: Promise<void> = Promise.resolve();
  let lastError = '';
  let rollingUp: Promise<void> | null = null;

  async function tick(): Promise<number> {
    const due = await findDueShares(deps.db(), shares);
    const counts = await Promise.allSettled(due.map((share) => workers[share]!.work(stopping.signal)));
    const failed = counts.find((outcome) => outcome.status === 'rejected');
    if (failed) throw failed.reason;
    return counts.reduce((sum, outcome) => sum + (outcome.status === 'fulfilled' ? outcome.value : 0), 0);
  }

  /**
   * Beside the uploads, never in their way: one process at a time rolls a site up, and it may be another one that hangs.
   * Marks may be left from a worker that died between its facts and its roll-up, so this does not ask for work of ours.
   */
  function rollUp(): Promise<void> {
    rollingUp ??= deps.facts
      .rollUp('none')
      .catch((error: unknown) => deps.reporter.warn('roll-up failed', { error: describeError(error) }))
      .finally(() => {
        rollingUp = null;
      });
    return rollingUp;
  }

  async function loop(): Promise<void> {
    let prunedAtMs = Number.NEGATIVE_INFINITY;
    while (!stopping.signal.aborted) {
      nap = new AbortController();
      let applied = 0;
      try {
        applied = await tick();
        void rollUp();
        if (deps.clock.monotonicMs() - prunedAtMs > pruneMs) {
          await pruneUploads(deps.db());
          prunedAtMs = deps.clock.monotonicMs();
        }
        if (lastError) deps.reporter.info('inbox works again');
        lastError = '';
      } catch (error) {
        const text = describeError(error);
        if (text !== lastError) deps.reporter.error('inbox failed', { error: text });
        lastError = text;
      }
      if (applied === 0) await deps.clock.wait(pollMs, AbortSignal.any([nap.signal, stopping.signal]));
    }
    await rollingUp;
    await Promise.all(workers.map((worker) => worker.resign()));
  }

  return {
    name: 'inbox worker',
    wake: () => nap.abort(),
    async drain() {
      while ((await tick()) > 0);
      await rollingUp;
      await deps.facts.rollUp('none');
    },
    async start() {
      stopping = new AbortController();
      finished = loop();
    },
    async stop() {
      stopping.abort();
      await finished;
    },
  };
}
