/** `npm run prove -- month-edges`: N requests over each of twelve ends of a month. */
import { moveDatabaseClock } from '#service-kit/testing/index.ts';
import { createFleet, type Fleet } from './api-fleet.ts';
import { sendTraffic } from './count-proof.ts';

export const name = 'month-edges';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const { tried, faults } = await proveMonthEdges({
    months: 12,
    requestsPerEdge: options.n,
    report: options.report,
  });
  for (const fault of faults) options.report(`FAULT ${fault}`);
  return {
    claim:
      'over 12 ends of a month, clocks of the processes wrong by ±3 s, each request is counted once, in the database’s month',
    tried,
    failures: faults.length,
  };
}

/**
 * Requests over the end of a month by the database's clock, from processes whose own clocks are wrong both ways. Each
 * is counted in one month, and the numbers of each month are its own, from 1. Nothing is counted in a month before it has
 * begun by that clock, or after it has ended.
 */
async function proveMonthEdges(options: {
  months: number;
  requestsPerEdge: number;
  report?: (line: string) => void;
}): Promise<{ tried: number; faults: string[] }> {
  await using fleet = await createFleet({
    processes: 3,
    keys: 5,
    skewsMs: [-3_000, 0, 3_000],
  });
  const faults: string[] = [];
  let tried = 0;
  let [period, start] = ['', 0];
  for (let edge = 0; edge < options.months; edge += 1) {
    await standBeforeMonthEnd(fleet);
    const before = await openMonth(fleet);
    if (before.period !== period) start = 0;
    // At least the wanted number, and until the month has turned.
    let isOver = false;
    const watch = watchTurn(fleet, before.period).finally(() => {
      isOver = true;
    });
    const { sent, numbers, unnumbered, lost } = await sendTraffic(
      fleet,
      24,
      (traffic) => isOver && traffic.sent >= options.requestsPerEdge,
    );
    const { early, closedAt } = await watch;
    const after = await openMonth(fleet);
    const closed = await countOf(fleet, before.period);
    if (early > 0) faults.push(`edge ${edge}: ${early} were counted before their month began`);
    if (closed !== closedAt)
      faults.push(`edge ${edge}: ${closed - closedAt} were counted after their month ended`);
    const wanted = [...range(start, closed), ...range(0, after.count)].sort((a, b) => a - b);
    const seen = numbers.toSorted((a, b) => a - b);
    if (unnumbered + lost > 0) faults.push(`edge ${edge}: ${unnumbered} unnumbered, ${lost} lost`);
    if (JSON.stringify(seen) !== JSON.stringify(wanted))
      faults.push(
        `edge ${edge}: ${seen.length} numbers are not ${start + 1}..${closed} and 1..${after.count}`,
      );
    if (after.count === 0 || closed === start)
      faults.push(`edge ${edge}: nothing was counted on one side of it`);
    tried += sent;
    [period, start] = [after.period, after.count];
    options.report?.(`${before.period} ${closed}, ${after.period} ${after.count}: ${faults.length} faults`);
  }
  return { tried, faults };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index + 1);
}

async function openMonth(fleet: Fleet): Promise<{ period: string; count: number }> {
  const { rows } = await fleet.pool.query<{ period: string }>(
    "select to_char(svc_now() at time zone 'utc', 'YYYY-MM') as period",
  );
  const { period } = rows[0]!;
  return { period, count: await countOf(fleet, period) };
}

async function countOf(fleet: Fleet, period: string): Promise<number> {
  const { rows } = await fleet.pool.query<{ count: number }>(
    "select count from usage_months where tenant_id = $1 and month = to_date($2, 'YYYY-MM')",
    [fleet.tenant.id, period],
  );
  return rows[0]?.count ?? 0;
}

/** Puts the database's clock a moment before the end of its month; every process gets new sessions. */
async function standBeforeMonthEnd(fleet: Fleet): Promise<void> {
  const { rows } = await fleet.pool.query<{ offset: string }>(
    `select (date_trunc('month', svc_now() at time zone 'utc') + interval '1 month' - interval '4 seconds'
       - (now() at time zone 'utc'))::text as offset`,
  );
  await moveDatabaseClock({ url: fleet.databaseUrl, pool: fleet.pool }, rows[0]!.offset);
  // The processes learn that their sessions ended by using them.
  for (const url of fleet.urls)
    for (let attempt = 0; attempt < 50; attempt += 1)
      if (
        (await fetch(`${url}/api/v2/servers/1`, { headers: { authorization: 'Bearer svc_x' } })).status ===
        401
      )
        break;
}

/** What a statement of before the turn may still take. */
const settleMs = 300;
/** As long again as the clocks of the processes would have to be seen wrong. */
const watchMs = 1_000;

/**
 * Watches the turn of a month: what the next one holds while this one still runs, and this one once nothing of before the
 * turn can be under way any more. Resolves when the next month has run for a while.
 */
async function watchTurn(fleet: Fleet, period: string): Promise<{ early: number; closedAt: number }> {
  let early = 0;
  for (;;) {
    const { rows } = await fleet.pool.query<{ isSame: boolean; next: number }>(
      `select to_char(svc_now() at time zone 'utc', 'YYYY-MM') = $2 as "isSame",
         coalesce((select count from usage_months
           where tenant_id = $1 and month = to_date($2, 'YYYY-MM') + interval '1 month'), 0) as next`,
      [fleet.tenant.id, period],
    );
    if (!rows[0]!.isSame) break;
    early = Math.max(early, rows[0]!.next);
    await new Promise((wake) => setTimeout(wake, 20));
  }
  await new Promise((wake) => setTimeout(wake, settleMs));
  const closedAt = await countOf(fleet, period);
  await new Promise((wake) => setTimeout(wake, watchMs));
  return { early, closedAt };
}
