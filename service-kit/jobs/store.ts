import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Job } from './index.ts';

/** Puts work into the queue; give the transaction that decides on it. Returns the job's id. */
export async function enqueueJob(db: Queryable, kind: string, payload: object, delayMs = 0): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into jobs (kind, payload, run_at)
    values (${kind}, ${JSON.stringify(payload)}::jsonb, svc_now() + make_interval(secs => ${delayMs / 1000}))
    returning id`.execute(db);
  return rows[0]!.id;
}

/** Claims the oldest due job; `skip locked` lets workers pass one another, and the term rises with every claim. */
export async function claimJob(
  db: Queryable,
  kinds: readonly string[],
  claimSeconds: number,
): Promise<Job | null> {
  const { rows } = await sql<Job>`
    update jobs set attempts = attempts + 1, term = term + 1,
      claimed_until = svc_now() + make_interval(secs => ${claimSeconds})
    where id = (
      select id from jobs
      where finished_at is null and run_at <= svc_now() and (claimed_until is null or claimed_until <= svc_now())
        and kind = any(${[...kinds]})
      order by run_at, id limit 1 for update skip locked)
    returning id, kind, payload, attempts, term`.execute(db);
  return rows[0] ?? null;
}

/** Lets the claim last from now on; nothing for a job that has ended or that another worker has claimed since. */
export async function renewJob(db: Queryable, job: Job, claimSeconds: number): Promise<void> {
  await sql`
    update jobs set claimed_until = svc_now() + make_interval(secs => ${claimSeconds})
    where id = ${job.id} and term = ${job.term} and claimed_until is not null`.execute(db);
}

/** Ends a job under its term; false when another worker has claimed it since (roll back what you did). */
export async function finishJob(db: Queryable, job: Job, error: string | null = null): Promise<boolean> {
  const { rows } = await sql`
    update jobs set finished_at = coalesce(finished_at, svc_now()), claimed_until = null, last_error = ${error}
    where id = ${job.id} and term = ${job.term} returning 1`.execute(db);
  return rows.length === 1;
}

/** Gives a job back for a later attempt. */
export async function failJob(db: Queryable, job: Job, error: string, delayMs: number): Promise<void> {
  await sql`
    update jobs set claimed_until = null, last_error = ${error},
      run_at = svc_now() + make_interval(secs => ${delayMs / 1000})
    where id = ${job.id} and term = ${job.term} and finished_at is null`.execute(db);
}

export interface QueueState {
  /** Jobs whose time has come and that are not finished, those under way among them. */
  due: number;
  /** For how long the oldest of them has been due, in seconds; 0 where none is. */
  oldestSeconds: number;
  /** Unfinished jobs whose last attempt failed. */
  failing: number;
}

export async function readQueueState(db: Queryable): Promise<QueueState> {
  const { rows } = await sql<QueueState>`
    select count(*) filter (where run_at <= svc_now())::int as due,
      coalesce(extract(epoch from svc_now() - min(run_at) filter (where run_at <= svc_now())), 0)::float8
        as oldest_seconds, count(*) filter (where last_error is not null)::int as failing
    from jobs where finished_at is null`.execute(db);
  return rows[0]!;
}
