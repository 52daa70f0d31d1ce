/** A stopped database clock, so that no test depends on the speed of the machine. */
import type { TestDatabase } from '#service-kit/testing/index.ts';

export type StillClock = Awaited<ReturnType<typeof stopDatabaseClock>>;

/** Stops `svc_now()` of this test database at a time. */
export async function stopDatabaseClock({ pool }: Pick<TestDatabase, 'pool'>, startMs: number) {
  let nowMs = startMs;
  await pool.query('create table test_clock (at timestamptz not null)');
  await pool.query('grant select on test_clock to public');
  await pool.query('insert into test_clock values (to_timestamp($1::float8 / 1000))', [startMs]);
  await pool.query(
    `create or replace function svc_now() returns timestamptz language sql stable as 'select at from public.test_clock'`,
  );
  return {
    /** Milliseconds since 1970. */
    nowMs: () => nowMs,
    /** Sets every `svc_now()` of this test database. */
    async set(ms: number) {
      nowMs = ms;
      await pool.query('update test_clock set at = to_timestamp($1::float8 / 1000)', [ms]);
    },
  };
}
