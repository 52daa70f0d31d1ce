/**
 * `npm run prove -- overage`: holds random histories of a month's requests, ticks of one to four workers at once, ticks that die at any step, and
 * changes of settings against what the months must cost: one rounded-down sum for each month, however it was charged.
 */
import fc from 'fast-check';
import type pg from 'pg';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { chargeOverage } from '#operations/billing-maintenance/index.ts';
import { createMetering, type Metering, type OveragePrice } from '#operations/metering/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { createPool } from '#service-kit/postgres/database.ts';

type Step =
  | { kind: 'requests'; count: number }
  /** Workers that tick at once, while some requests arrive. */
  | { kind: 'tick'; workers: number; arriving: number }
  /** A tick that ends like a killed process, at this step. */
  | { kind: 'killed'; at: (typeof killPoints)[number] }
  | { kind: 'month' }
  | { kind: 'included'; count: number };

const killPoints = ['after closing', 'after locking', 'after the entry', 'before commit'] as const;

interface Schedule {
  price: OveragePrice;
  steps: Step[];
}

const scheduleOf = fc.record<Schedule>({
  price: fc.oneof(
    { weight: 2, arbitrary: fc.constant({ unitRequests: 100_000, rateQuanta: 10_000 }) },
    {
      weight: 1,
      arbitrary: fc.record({
        unitRequests: fc.integer({ min: 1, max: 50 }),
        rateQuanta: fc.integer({ min: 1, max: 50 }),
      }),
    },
  ),
  steps: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('requests' as const), count: fc.nat(60) }) },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('tick' as const),
          workers: fc.integer({ min: 1, max: 4 }),
          arriving: fc.nat(30),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant('killed' as const), at: fc.constantFrom(...killPoints) }),
      },
      { weight: 1, arbitrary: fc.constant({ kind: 'month' as const }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('included' as const), count: fc.nat(50) }) },
    ),
    { minLength: 4, maxLength: 16 },
  ),
});

/** Months of a schedule, the first one running by the world's clock. */
const monthsMax = 3;

export const name = 'overage';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  await using world = await createWorld();
  const { tenant } = await world.createCustomer('Overage proof');
  const aheadMs = world.clock.nowMs() - Date.now();
  const clocks = Array.from({ length: monthsMax }, (_, month) => {
    const url = new URL(world.database.url);
    url.searchParams.set('options', `-c svc.clock_offset=${aheadMs}\\ milliseconds\\ ${month * 31}\\ days`);
    return createPool(url.toString(), 8);
  });
  try {
    const property = fc.asyncProperty(scheduleOf, (schedule) =>
      runSchedule({ clocks, pool: world.database.pool, tenantId: tenant.id }, schedule),
    );
    const outcome = await fc.check(property, { numRuns: options.n, seed: options.seed });
    if (outcome.failed) options.report(fc.defaultReportMessage(outcome) ?? 'failed');
    return {
      claim:
        'any schedule of ticks, kills, months and settings charges the one rounded-down sum of each month',
      tried: outcome.numRuns,
      failures: outcome.failed ? 1 : 0,
    };
  } finally {
    await Promise.all(clocks.map((clock) => clock.db.destroy()));
  }
}

interface Setting {
  pool: pg.Pool;
  clocks: { pool: pg.Pool; db: ReturnType<typeof createPool>['db'] }[];
  tenantId: number;
}

/** What the months must come to, kept apart from the program's own figures. */
interface Model {
  month: number;
  included: number;
  counts: number[];
  /** What was free when a tick last saw each month run. */
  noted: (number | undefined)[];
  /** What was free in each month that has been closed. */
  kept: (number | undefined)[];
  /** The most that each month has owed at a finished tick: a later, larger allowance gives nothing back. */
  owed: number[];
}

async function runSchedule(setting: Setting, schedule: Schedule): Promise<void> {
  const { pool } = setting;
  await pool.query(
    `delete from usage_months; delete from usage_terms; delete from ledger_entries where metadata ->> 'source' = 'api_overage'`,
  );
  const model: Model = { month: 0, included: 10, counts: [0], noted: [], kept: [], owed: [] };
  for (const step of schedule.steps) await apply(setting, schedule.price, model, step);
  await apply(setting, schedule.price, model, { kind: 'tick', workers: 1, arriving: 0 });
  const before = await charges(pool, setting.tenantId);
  await apply(setting, schedule.price, model, { kind: 'tick', workers: 2, arriving: 0 });
  const after = await charges(pool, setting.tenantId);
  if (before.sum !== after.sum) throw new Error(`a second tick charged ${after.sum - before.sum}`);
  const owed = model.owed.reduce((sum, each) => sum + each, 0);
  if (after.sum !== owed) throw new Error(`charged ${after.sum} quanta where ${owed} were owed`);
  await checkMarks(pool, schedule.price);
}

/** A mark names the fewest requests that the charges of its month pay for, and never more. */
async function checkMarks(pool: pg.Pool, price: OveragePrice): Promise<void> {
  const { rows } = await pool.query<{ mark: number; charged: number; count: number }>(
    `select overage_charged_count as mark, count,
       (select coalesce(-sum(amount_quanta), 0)::bigint from ledger_entries e
         where e.tenant_id = u.tenant_id and e.metadata ->> 'source' = 'api_overage'
           and e.metadata ->> 'period' = to_char(u.month, 'YYYY-MM')) as charged
     from usage_months u`,
  );
  for (const { mark, charged, count } of rows) {
    const paid = Math.ceil((charged * price.unitRequests) / price.rateQuanta);
    if (mark !== paid) throw new Error(`the mark is ${mark} where ${charged} quanta pay for ${paid}`);
    if (mark > count) throw new Error('a mark is beyond the requests');
  }
}

async function apply(setting: Setting, price: OveragePrice, model: Model, step: Step): Promise<void> {
  switch (step.kind) {
    case 'requests':
      return count(setting, model, step.count);
    case 'included':
      model.included = step.count;
      return;
    case 'month':
      if (model.month < monthsMax - 1) {
        model.month += 1;
        model.counts[model.month] = 0;
      }
      return;
    case 'killed':
      noteClosed(model);
      await tick(setting, price, model, step.at).catch((error) => {
        if ((error as Error).message !== 'killed') throw error;
      });
      return;
    case 'tick': {
      noteClosed(model);
      const ticks = Array.from({ length: step.workers }, () => tick(setting, price, model, null));
      await Promise.all([...ticks, count(setting, model, step.arriving)]);
      // What arrived meanwhile may have been charged or not; now all of it is.
      await tick(setting, price, model, null);
      noteOwed(model, price);
    }
  }
}

/** A month that is over keeps what was free when a tick last saw it run, or first sees it over; nothing changes that. */
function noteClosed(model: Model): void {
  for (let month = 0; month < model.month; month += 1)
    if (model.counts[month]! > 0) model.kept[month] ??= model.noted[month] ?? model.included;
  model.noted[model.month] = model.included;
}

function noteOwed(model: Model, price: OveragePrice): void {
  for (const [month, count] of model.counts.entries()) {
    const overage = Math.max(0, count - (model.kept[month] ?? model.included));
    const owes = Math.floor((overage * price.rateQuanta) / price.unitRequests);
    model.owed[month] = Math.max(model.owed[month] ?? 0, owes);
  }
}

async function count(setting: Setting, model: Model, n: number): Promise<void> {
  if (n === 0) return;
  model.counts[model.month]! += n;
  await setting.clocks[model.month]!.pool.query(
    `insert into usage_months as kept (tenant_id, month, count)
     values ($1, date_trunc('month', svc_now() at time zone 'utc')::date, $2)
     on conflict (tenant_id, month) do update set count = kept.count + excluded.count`,
    [setting.tenantId, n],
  );
}

async function tick(
  setting: Setting,
  price: OveragePrice,
  model: Model,
  dieAt: (typeof killPoints)[number] | null,
): Promise<void> {
  const clock = setting.clocks[model.month]!;
  const metering = createMetering({
    db: () => clock.db,
    pool: () => clock.pool,
    clock: systemClock,
    reporter: silentReporter,
    includedPerMonth: model.included,
    price,
  });
  await chargeOverage({ db: () => clock.db, metering: crashingMetering(metering, dieAt) });
}

/** A process that dies at a step leaves what a thrown error leaves: a transaction that never commits. */
function crashingMetering(metering: Metering, at: (typeof killPoints)[number] | null): Metering {
  const die = () => {
    throw new Error('killed');
  };
  return {
    ...metering,
    async closeMonths() {
      await metering.closeMonths();
      if (at === 'after closing') die();
    },
    async lockDueOverage(...given) {
      const due = await metering.lockDueOverage(...given);
      return at === 'after locking' ? die() : due;
    },
    async noteCharged(...given) {
      if (at === 'after the entry') die();
      await metering.noteCharged(...given);
      if (at === 'before commit') die();
    },
  } as Metering;
}

async function charges(pool: pg.Pool, tenantId: number): Promise<{ sum: number }> {
  const { rows } = await pool.query<{ sum: number }>(
    `select coalesce(-sum(amount_quanta), 0)::bigint as sum from ledger_entries
     where tenant_id = $1 and metadata ->> 'source' = 'api_overage'`,
    [tenantId],
  );
  return rows[0]!;
}
