/** Every statement on verdicts of minutes. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { JudgedMinute } from './judge-minutes.ts';

/** Minutes of an allocation generation from one (inclusive) to another (exclusive), seconds since 1970. */
export interface VerdictRange {
  item: string;
  fromMinute: number;
  toMinute: number;
}

/** Stored verdicts of each range, in time order. */
export async function readVerdicts(
  db: Queryable,
  ranges: readonly VerdictRange[],
): Promise<JudgedMinute[][]> {
  const { rows } = await sql<JudgedMinute & { n: number }>`
    select q.n::int as n, extract(epoch from v.minute)::float8 as minute, v.input, v.bytes, v.packets, v.is_healthy,
      v.ddos_bytes, v.ddos_packets, v.is_checked, v.expected_bps, v.expected_pps, v.reason
    from unnest(${ranges.map(({ item }) => item)}::text[], ${ranges.map(({ fromMinute }) => fromMinute)}::float8[],
      ${ranges.map(({ toMinute }) => toMinute)}::float8[]) with ordinality as q (item, from_second, to_second, n)
    join minute_verdicts v on v.item = q.item and v.minute >= to_timestamp(q.from_second)
      and v.minute < to_timestamp(q.to_second)
    order by q.n, v.minute`.execute(db);
  const found: JudgedMinute[][] = ranges.map(() => []);
  for (const { n, ...verdict } of rows) found[n - 1]!.push(verdict);
  return found;
}

const daySeconds = 86_400;
const knownDays = new WeakMap<object, Set<number>>();

/** Writes verdicts that are new or were judged again. */
export async function writeVerdicts(db: Queryable, verdicts: readonly (JudgedMinute & { item: string })[]) {
  if (verdicts.length === 0) return;
  await ensureDays(db, verdicts);
  await sql`
    insert into minute_verdicts (item, minute, input, bytes, packets, is_healthy, ddos_bytes, ddos_packets, is_checked,
      expected_bps, expected_pps, reason)
    select item, to_timestamp(minute), input, bytes, packets, "isHealthy", "ddosBytes", "ddosPackets", "isChecked",
      "expectedBps", "expectedPps", reason
    from jsonb_to_recordset(${JSON.stringify(verdicts)}::jsonb) as v(item text, minute float8, input text, bytes bigint,
      packets bigint, "isHealthy" boolean, "ddosBytes" bigint, "ddosPackets" bigint, "isChecked" boolean,
      "expectedBps" float8, "expectedPps" float8, reason text)
    order by item, minute
    on conflict (item, minute) do update set input = excluded.input, bytes = excluded.bytes, packets = excluded.packets,
      is_healthy = excluded.is_healthy, ddos_bytes = excluded.ddos_bytes, ddos_packets = excluded.ddos_packets,
      is_checked = excluded.is_checked, expected_bps = excluded.expected_bps, expected_pps = excluded.expected_pps,
      reason = excluded.reason`.execute(db);
}

/** Makes partitions once in a process, and before anything is written to them. */
async function ensureDays(db: Queryable, verdicts: readonly Pick<JudgedMinute, 'minute'>[]): Promise<void> {
  const known = knownDays.get(db) ?? new Set<number>();
  knownDays.set(db, known);
  for (const day of new Set(verdicts.map(({ minute }) => Math.floor(minute / daySeconds) * daySeconds))) {
    if (known.has(day)) continue;
    await sql`select ensure_fact_partition('minute_verdicts', to_timestamp(${day}::float8), interval '1 day')`.execute(
      db,
    );
    known.add(day);
  }
}
