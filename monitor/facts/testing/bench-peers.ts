/** What peer networks cost: processor time of PostgreSQL when an hour's are made, and their disk, both for a million connections. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { recomputePeers } from '../postgres/peer-store.ts';
import { preferHashing } from '../postgres/span-store.ts';
import type { BenchDatabase } from './bench-monitor.ts';
import { processorSeconds } from './processor-time.ts';

const hoursMeasured = 3;

export async function benchPeers(
  { database }: BenchDatabase,
  siteId: number,
  report: (line: string) => void,
): Promise<void> {
  const { pool, db } = database;
  const { rows: hours } = await pool.query<{ hour: number; pairs: number }>(
    `select extract(epoch from date_trunc('hour', minute))::float8 as hour, count(*)::int as pairs
     from endpoint_pairs where site_id = $1 and minute >= svc_now() - interval '20 hours' group by 1 order by 1 limit $2`,
    [siteId, hoursMeasured + 1],
  );
  let [pairs, cpuSeconds, seconds] = [0, 0, 0];
  // The first is not whole.
  for (const { hour, pairs: ofHour } of hours.slice(1)) {
    await db.transaction().execute(async (trx) => {
      await preferHashing(trx);
      const cpu = await cpuOf(trx);
      const [cpuBefore, before] = [cpu(), performance.now()];
      await recomputePeers(trx, siteId, hour);
      seconds += (performance.now() - before) / 1000;
      cpuSeconds += cpu() - cpuBefore;
    });
    pairs += ofHour;
  }
  const million = pairs / 1e6;
  report(
    `peer networks of ${pairs} connections in ${hours.length - 1} hours, for a million: ${(cpuSeconds / million).toFixed(1)} s of processor time, ${(seconds / million).toFixed(1)} s`,
  );
  await pool.query('vacuum peer_network_hours');
  const { rows: size } = await pool.query<{ rows: number; bytes: number; pairs: number }>(
    `select (select count(*) from peer_network_hours)::int as rows,
       (select sum(pg_total_relation_size(relid)) from pg_partition_tree('peer_network_hours'))::float8 as bytes,
       (select count(*) from endpoint_pairs p where exists (select from rolled_hours r
         where r.site_id = p.site_id and not r.is_dirty and r.hour = date_trunc('hour', p.minute)))::int as pairs`,
  );
  const { rows, bytes, pairs: all } = size[0]!;
  const perMillion = (value: number) => value / (all / 1e6);
  report(
    `peer networks kept: ${rows} rows, ${(bytes / 2 ** 20).toFixed(0)} MiB with indexes; for a million connections ${perMillion(rows).toFixed(0)} rows, ${(perMillion(bytes) / 2 ** 20).toFixed(0)} MiB`,
  );
}

/** Seconds that the transaction's server process has used so far. */
async function cpuOf(trx: Queryable): Promise<() => number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
  return () => processorSeconds(rows[0]!.pid);
}
