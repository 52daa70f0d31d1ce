import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import { createWorkLoop, type WorkLoop } from '#common/lifecycle/work-loop.ts';
import { backoffMs } from '#common/retry/index.ts';
import type { LoopDeps } from '#service-kit/leases/index.ts';
import { claimJob, failJob, finishJob, renewJob } from './store.ts';

export { enqueueJob, finishJob, type QueueState, readQueueState } from './store.ts';

export interface JobRunnerOptions extends LoopDeps {
  handlers: Readonly<Record<string, JobHandler>>;
  /** How long a claim lasts unless it is renewed, which a worker does while it runs the job; one that dies frees it after that. */
  claimSeconds?: number;
  pollMs?: number;
}

/** Runs what is due; `wake` looks for work now instead of at the next poll. */
export type JobRunner = WorkLoop;

export function createJobRunner(options: JobRunnerOptions): JobRunner {
  const { clock, reporter, claimSeconds = 60, pollMs = 500 } = options;
  const kinds = Object.keys(options.handlers);

  async function runNext(signal: AbortSignal): Promise<boolean> {
    const job = await claimJob(options.db(), kinds, claimSeconds);
    if (!job) return false;
    const handler = options.handlers[job.kind]!;
    const ended = new AbortController();
    const kept = keepClaim(job, ended.signal);
    try {
      await handler.run(job, signal);
      await finishJob(options.db(), job);
    } catch (error) {
      await handleFailure(job, handler, describeError(error));
    } finally {
      ended.abort();
      await kept;
    }
    return true;
  }

  /** One call of a handler may take longer than a claim, and no other worker may begin the same job meanwhile. */
  async function keepClaim(job: Job, ended: AbortSignal): Promise<void> {
    for (;;) {
      await clock.wait((claimSeconds * 1000) / 3, ended);
      if (ended.aborted) return;
      try {
        await renewJob(options.db(), job, claimSeconds);
      } catch (error) {
        reporter.warn('a job’s claim could not be renewed', { job: job.id, error: describeError(error) });
      }
    }
  }

  async function handleFailure(job: Job, handler: JobHandler, error: string): Promise<void> {
    reporter.warn('job failed', { job: job.id, kind: job.kind, attempt: job.attempts, error });
    if (handler.attemptsMax !== undefined && job.attempts >= handler.attemptsMax) {
      await handler.giveUp?.(job, error);
      await finishJob(options.db(), job, error);
      return;
    }
    await failJob(options.db(), job, error, backoffMs({ firstMs: 500, maxMs: 60_000 }, job.attempts));
  }

  return createWorkLoop({
    name: 'jobs',
    clock,
    reporter,
    pollMs,
    failure: 'jobs can not be read',
    work: runNext,
  });
}

/** What a feature does beside the calls that it answers. Any number of replicas may do it. */
export interface FeatureWork {
  /** Durable jobs by kind, for the workers that all features share. */
  jobHandlers?: Readonly<Record<string, JobHandler>>;
  /** Its own loops and workers, in the order in which they start. */
  parts?: readonly Part[];
}

export interface Job {
  id: number;
  kind: string;
  payload: unknown;
  /** Counts from 1. */
  attempts: number;
  /** The fence: `finishJob` refuses another term. */
  term: number;
}

export interface JobHandler {
  /** Does the work. May call `finishJob` in its own last transaction; otherwise the runner finishes it. */
  run(job: Job, signal: AbortSignal): Promise<void>;
  /** After this many failed attempts `giveUp` is called once and the job ends. Absent: tries without end. */
  attemptsMax?: number;
  giveUp?(job: Job, error: string): Promise<void>;
}
