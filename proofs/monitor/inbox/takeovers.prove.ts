/**
 * The process that holds leases of the inbox is frozen past their time, another one takes over, and the frozen one goes
 * on where it was. Triggers compare the term under which each row is written with the lease's at that moment: no row may
 * be written under a past term. And a take-over comes within the lease's time, a tick and what a busy machine needs.
 */
import { seededRandom } from '#common/random/index.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { createFleet, type Fleet, type Worker } from './ingest-fleet.ts';

export const name = 'inbox-takeovers';

const leaseSeconds = 1;
/** Between two looks of an idle worker at the inbox. */
const tickMs = 1_000;
/** The lease's time and a tick; both again where the holder froze in the middle of a COPY; and a second for the machine. */
const takeoverMsMax = 2 * (leaseSeconds * 1_000 + tickMs) + 1_000;
/** Without a follower by then, there is none. */
const waitMsMax = 120_000;

export interface TakeoverOptions {
  /** Take-overs. */
  n: number;
  seed: number;
  report(line: string): void;
  sensors?: number;
  workers?: number;
  /** A take-over after more than this is an offence. */
  latencyMsMax?: number;
}

export interface TakeoverResult {
  offences: string[];
  /** Freezing to the follower's first moment, by the database's clock. */
  latenciesMs: number[];
}

export async function prove(options: TakeoverOptions) {
  const { offences, latenciesMs } = await forceTakeovers(options);
  for (const offence of offences) options.report(offence);
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const p99 = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
  return {
    claim: `holders frozen past their lease of ${leaseSeconds} s: no row is written by a past term; take-overs within ${Math.round(p99)} ms (99 %)`,
    tried: options.n,
    failures: offences.length,
  };
}

/** Freezes holders until `n` of their leases were taken over. */
export async function forceTakeovers(options: TakeoverOptions): Promise<TakeoverResult> {
  const { n, sensors = 40, workers = 4, latencyMsMax = takeoverMsMax } = options;
  const random = seededRandom(options.seed);
  await using database = await createTestDatabase('monitor');
  await watchTerms(database);
  await using fleet = await createFleet({
    database,
    workerUrl: database.url,
    sensors,
    workers,
    leaseSeconds,
    random,
  });
  const result: TakeoverResult = { offences: [], latenciesMs: [] };
  let isOver = false;
  const sending = (async () => {
    while (!isOver) await fleet.send(50);
  })();
  try {
    while (result.latenciesMs.length < n) {
      await freezeOne(fleet, database, { random, latencyMsMax }, result);
      if (result.latenciesMs.length % 25 === 0 && result.latenciesMs.length > 0)
        options.report(`${result.latenciesMs.length} take-overs`);
    }
  } finally {
    isOver = true;
    await sending;
  }
  if (!(await fleet.settle(300_000))) result.offences.push('uploads were left unapplied');
  const { rows } = await database.pool.query(
    'select wrote, lease, term, held, count(*)::int as n from past_writes group by 1, 2, 3, 4 order by 5 desc limit 5',
  );
  for (const row of rows)
    result.offences.push(
      `${row.n} rows of ${row.wrote} were written by term ${row.term} of ${row.lease} when it was ${row.held}`,
    );
  result.offences.push(...(await fleet.judge()));
  return result;
}

async function freezeOne(
  fleet: Fleet,
  database: TestDatabase,
  { random, latencyMsMax }: { random: () => number; latencyMsMax: number },
  result: TakeoverResult,
): Promise<void> {
  const { rows: held } = await database.pool.query(
    "select name, term, split_part(holder, '-', 1)::int as pid from leases where name like 'inbox %' and expires_at > svc_now()",
  );
  const lease = held[Math.floor(random() * held.length)];
  const worker = lease && fleet.workers.find(({ pid }) => pid === lease.pid);
  if (!worker) {
    await new Promise((wake) => setTimeout(wake, 50));
    return;
  }
  const { rows: clock } = await database.pool.query('select svc_now() as now');
  worker.child.kill('SIGSTOP');
  const latencyMs = await waitForFollower(database, lease, clock[0].now);
  await resume(worker, random);
  if (latencyMs === null) {
    result.offences.push(`${lease.name} was not taken over within ${waitMsMax / 1000} s`);
    result.latenciesMs.push(waitMsMax);
    return;
  }
  result.latenciesMs.push(latencyMs);
  if (latencyMs > latencyMsMax) result.offences.push(`${lease.name} was taken over after ${latencyMs} ms`);
}

async function waitForFollower(
  database: TestDatabase,
  lease: { name: string; term: number },
  frozenAt: Date,
): Promise<number | null> {
  for (const deadline = Date.now() + waitMsMax; Date.now() < deadline; ) {
    const { rows } = await database.pool.query(
      'select extract(epoch from acquired_at - $3) * 1000 as ms from leases where name = $1 and term > $2',
      [lease.name, lease.term, frozenAt],
    );
    if (rows[0]) return Number(rows[0].ms);
    await new Promise((wake) => setTimeout(wake, 20));
  }
  return null;
}

/** Sometimes at once, sometimes when its follower is in the middle of something. */
async function resume(worker: Worker, random: () => number): Promise<void> {
  await new Promise((wake) => setTimeout(wake, random() * 150));
  worker.child.kill('SIGCONT');
  await new Promise((wake) => setTimeout(wake, random() * 300));
}

/** Notes each row that is written under another term than the lease has. */
async function watchTerms(database: TestDatabase): Promise<void> {
  await database.pool.query(`
    create table past_writes (wrote text, lease text, term text, held bigint);
    create function note_past_write() returns trigger language plpgsql as $$
    declare
      of_lease text := nullif(current_setting('svc.lease', true), '');
      held bigint;
    begin
      if of_lease is null then return null; end if;
      -- Read with a lock: a concurrent takeover is either before this or after the commit.
      select term into held from leases where name = of_lease for share;
      if held::text <> current_setting('svc.lease_term', true) then
        insert into past_writes values (tg_table_name, of_lease, current_setting('svc.lease_term', true), held);
      end if;
      return null;
    end $$;
    create trigger watch_terms after insert or update on capture_minutes for each row execute function note_past_write();
    create trigger watch_terms after update of state on inbox_uploads for each row execute function note_past_write();`);
}
