/**
 * Keeps parts of the monitor's work for later, by marks and leases in its database, so that each part is measured alone: uploads
 * are stored and not applied, applied and not rolled up.
 */
import pg from 'pg';
import type { BenchDatabase } from '#monitor/facts/testing/bench-monitor.ts';

const lookMs = 50;
/** Loops that read what is rolled up every five minutes. */
const readers = ['rank_applications', 'note_application_names'];

export interface HeldWork {
  /** What is stored from now on waits. */
  holdUploads(): Promise<void>;
  /** Until all that waits is applied, and its minutes have their sums. */
  applyUploads(): Promise<void>;
  /** Of roll-ups, and of loops that read them. */
  holdLoops(): Promise<void>;
  /** Until none is left, as if the facts had come an hour ago. The loop goes on with ten minutes at once. */
  judgeMinutes(): Promise<void>;
  makeTenMinutes(): Promise<void>;
  makeHours(): Promise<void>;
  /** Roll-ups come in their time again. */
  releaseRollUps(): Promise<void>;
  /** Loops that read them may run, here too. */
  releaseReaders(): Promise<void>;
  close(): Promise<void>;
}

export async function createHeldWork(bench: BenchDatabase): Promise<HeldWork> {
  // Of its own: what it asks is not a statement of the program's pool.
  const client = new pg.Client({ connectionString: bench.url });
  await client.connect();
  const run = (text: string) => client.query(text);
  const until = async (isNone: string) => {
    for (;;) {
      const { rows } = await client.query<{ left: boolean }>(`select exists (${isNone}) as left`);
      if (!rows[0]!.left) return;
      await new Promise((wake) => setTimeout(wake, lookMs));
    }
  };
  const dueAt = (value: string) => run(`alter table inbox_uploads alter column due_at set default ${value}`);
  const lease = (name: string, seconds: number) =>
    run(`insert into leases as held (name, holder, term, acquired_at, expires_at)
      values ('${name}', 'bench', 1, svc_now(), svc_now() + make_interval(secs => ${seconds}))
      on conflict (name) do update set holder = 'bench', term = held.term + 1, expires_at = excluded.expires_at`);
  const [rollUps, day] = ['roll_up_hours', 86_400];
  return {
    holdUploads: async () => void (await dueAt("svc_now() + interval '1 day'")),
    async applyUploads() {
      await dueAt('svc_now()');
      await run("update inbox_uploads set due_at = svc_now() where state = 'pending'");
      await until("select from inbox_uploads where state = 'pending'");
      await until('select from site_minute_marks');
    },
    async holdLoops() {
      for (const name of [rollUps, ...readers]) await lease(name, day);
    },
    async judgeMinutes() {
      await run("update unjudged_minutes set marked_at = svc_now() - interval '1 hour'");
      await run(
        "update rolled_hours set marked_at = svc_now() + interval '1 day', rolled_at = svc_now() + interval '1 day' where is_dirty",
      );
      await lease(rollUps, 0);
      await until('select from unjudged_minutes');
    },
    async makeTenMinutes() {
      await until("select from rolled_tens where is_dirty and start + interval '10 minutes' <= svc_now()");
      await lease(rollUps, day);
    },
    async makeHours() {
      await run(
        "update rolled_hours set marked_at = svc_now() - interval '1 hour', rolled_at = null where is_dirty",
      );
      await lease(rollUps, 0);
      await until(
        "select from rolled_hours where is_dirty and hour + interval '1 hour 2 minutes' <= svc_now()",
      );
      await lease(rollUps, day);
    },
    releaseRollUps: async () => void (await lease(rollUps, 0)),
    async releaseReaders() {
      for (const name of readers) await lease(name, 0);
    },
    close: () => client.end(),
  };
}
