/** How long a replay of three months of one address takes: both directions in every minute, among 20 other addresses of its days. */
import { systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld } from '#monitor/testing/index.ts';

export const name = 'what-if';

const days = 90;
const runs = 7;

export async function run(report: (line: string) => void): Promise<void> {
  await using world = await createMonitorWorld();
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  const nowMs = Math.floor(Date.now() / 60_000) * 60_000;
  await world.rows(
    `select ensure_fact_partition('detector_addresses', day, interval '1 day')
     from generate_series(date_trunc('day', now() - interval '91 days'), now(), interval '1 day') day`,
  );
  const insert = (address: string, minutes: number) =>
    world.rows(
      `insert into detector_addresses (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds, attack_bytes, attack_packets)
       select to_timestamp($1::float8) - n * interval '1 minute', $2, $3, 'uplink0', $4, side,
         array[v, v * 800, v / 10, v / 3, v * 100, 3, 0, 0, 0, 1]::bigint[], array[v / 2, v * 400, v / 20, v / 6, v * 50, 1, 0, 0, 0, 0]::bigint[], 0, 0
       from generate_series(1, $5::int) n cross join (values (false), (true)) s(side)
       cross join lateral (select case when n % 9000 = 0 then 90000 else (n * 7919) % 4000 end) t(v)`,
      [nowMs / 1000, world.siteId, world.sensor.id, address, minutes],
    );
  await insert('198.51.100.5', days * 1440);
  for (let i = 6; i < 26; i += 1) await insert(`198.51.100.${i}`, 2880);
  await world.rows('analyze detector_addresses');
  const timed = async (what: string, ask: () => Promise<unknown>) => {
    const times: number[] = [];
    for (let i = 0; i < runs; i += 1) {
      const startedAt = performance.now();
      await ask();
      times.push(performance.now() - startedAt);
    }
    times.sort((a, b) => a - b);
    report(`${what}: median ${Math.round(times[runs >> 1]!)} ms, slowest ${Math.round(times.at(-1)!)} ms`);
  };
  const rows = days * 1440 * 2;
  const ask = (pps: string) =>
    world.protection.askWhatIf(world.siteId, '198.51.100.5', { inbound: { pps }, outbound: {} }, nowMs);
  await timed(`what-if over ${rows} rows, few minutes loud`, () => ask('20k'));
  await timed(`what-if over ${rows} rows, half of the minutes loud`, () => ask('2k'));
  await timed(`learn over ${rows} rows`, () => world.protection.learn(world.siteId, '198.51.100.5', nowMs));
}
