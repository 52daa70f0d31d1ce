/**
 * The loop that applies uploads. Sensors are divided into shares; a worker takes the lease of a share when there is
 * work in it, and keeps it while it works, so an idle inbox writes nothing. Uploads of a share are applied in the order
 * they came; one that fails waits its turn again and lets the others pass.
 */
import { randomUUID } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import type { InboxParts } from './index.ts';
import { createShareWorker, shares } from './share-worker.ts';
import { findDueShares, pruneUploads } from './store.ts';

const pollMs = 1_000;
const pruneMs = 3_600_000;

export function createInboxWorker(deps: InboxParts) {
  const holder = `${process.pid}-${randomUUID()}`;
  const workers = Array.from({ length: shares }, (_, share) => createShareWorker(deps, share, holder));
  let stopping = new AbortController();
  let nap = new AbortController();
  let finished: Promise<void> = Promise.resolve();
  let lastError = '';
  let followingUp: Promise<void> | null = null;

  async function tick(gatherMs: number): Promise<number> {
    const due = await findDueShares(deps.db(), shares, gatherMs);
    const counts = await Promise.allSettled(
      due.map((share) => workers[share]!.work(stopping.signal, gatherMs > 0)),
    );
    const failed = counts.find((outcome) => outcome.status === 'rejected');
    if (failed) throw failed.reason;
    return counts.reduce((sum, outcome) => sum + (outcome.status === 'fulfilled' ? outcome.value : 0), 0);
  }

  /** Beside the uploads, never in their way: what consumers do here may wait for another process, and that one may hang. */
  function followUp(): Promise<void> {
    followingUp ??= Promise.all(
      deps.consumers.map(async (consumer) => {
        try {
          await consumer.followUp?.();
        } catch (error) {
          const fields = { kind: consumer.kind, error: describeError(error) };
          deps.reporter.warn('work after uploads failed', fields);
        }
      }),
    ).then(() => {
      followingUp = null;
    });
    return followingUp;
  }

  async function loop(): Promise<void> {
    let prunedAtMs = Number.NEGATIVE_INFINITY;
    while (!stopping.signal.aborted) {
      nap = new AbortController();
      let applied = 0;
      try {
        applied = await tick(deps.gatherMs ?? 0);
        void followUp();
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
    await followingUp;
    await Promise.all(workers.map((worker) => worker.resign()));
  }

  return {
    name: 'inbox worker',
    wake: () => nap.abort(),
    async drain() {
      while ((await tick(0)) > 0);
      await followingUp;
      for (const consumer of deps.consumers) await consumer.followUp?.();
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
