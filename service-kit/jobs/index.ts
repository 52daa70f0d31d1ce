/**
 * Durable work: enqueued in the transaction that decides on it, done at least once by any worker, with effects that
 * happen once because the handler's last transaction is fenced by the job's term.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { createWorkLoop, type WorkLoop } from '#common/lifecycle/work-loop.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Job, JobHandler } from './job.ts';
import { claimJob, failJob, finishJob } from './store.ts';

export type { FeatureWork } from './feature-work.ts';
export type { Job, JobHandler } from './job.ts';

export { enqueueJob, finishJob, type QueueState, readQueueState } from './store.ts';

export interface JobRunnerOptions {
  db: () => Queryable;
  handlers: Readonly<Record<string, JobHandler>>;
  clock: Clock;
  reporter: Reporter;
  /** How long a claim lasts; a worker that dies frees its job after it. */
  claimSeconds?: number;
  pollMs?: number;
}

/** Runs what is due; `wake` looks for work now instead of at the next poll. */
export type JobRunner = WorkLoop;

export function createJobRunner(options: JobRunnerOptions): JobRunner {
  const claimSeconds = options.claimSeconds ?? 60;
  const kinds = Object.keys(options.handlers);

  async function runNext(signal: AbortSignal): Promise<boolean> {
    const job = await claimJob(options.db(), kinds, claimSeconds);
    if (!job) return false;
    const handler = options.handlers[job.kind]!;
    try {
      await handler.run(job, signal);
      await finishJob(options.db(), job);
    } catch (error) {
      await handleFailure(job, handler, describeError(error));
    }
    return true;
  }

  async function handleFailure(job: Job, handler: JobHandler, error: string): Promise<void> {
    options.reporter.warn('job failed', { job: job.id, kind: job.kind, attempt: job.attempts, error });
    if (handler.attemptsMax !== undefined && job.attempts >= handler.attemptsMax) {
      await handler.giveUp?.(job, error);
      await finishJob(options.db(), job, error);
      return;
    }
    await failJob(options.db(), job, error, backoffMs({ firstMs: 500, maxMs: 60_000 }, job.attempts));
  }

  const { clock, reporter, pollMs = 500 } = options;
  return createWorkLoop({
    name: 'jobs',
    clock,
    reporter,
    pollMs,
    failure: 'jobs can not be read',
    work: runNext,
  });
}
