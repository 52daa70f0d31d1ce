import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createMonitorWorld } from '#monitor/testing/index.ts';
import { createRetention, keptTables } from './index.ts';

test('NET-8.R1: WAN probe and availability history and resolved alert episodes go after three months, to the minute', async () => {
  await using world = await createMonitorWorld();
  const db = () => world.database.db;
  const edges = [`interval '3 months' + interval '1 minute'`, `interval '3 months' - interval '1 minute'`];
  const [probe] = await world.rows<{ id: number }>(
    `insert into probes (site_id, name, kind, target, interval_seconds, timeout_ms)
     values (${world.siteId}, 'Gateway', 'icmp', '192.0.2.1', 10, 1000) returning id`,
  );
  const [channel] = await world.rows<{ id: number }>(
    `insert into alert_channels (kind, name, settings) values ('email', 'Night', '{"recipients": "a@example.net"}') returning id`,
  );
  for (const age of edges) {
    const at = `svc_now() - (${age})`;
    for (const table of ['probe_results', 'probe_minutes'])
      await world.rows(
        `select ensure_fact_partition('${table}', date_trunc('day', ${at}, 'UTC'), interval '1 day')`,
      );
    await world.rows(`insert into probe_results (minute, probe_id, sensor_id, first_sent_ms, sent, lost)
      values (${at}, ${probe!.id}, ${world.sensor.id}, 0, 6, 0)`);
    await world.rows(`insert into probe_minutes (minute, probe_id, sent, lost, rtt_median_sum_us, rtt_medians)
      values (${at}, ${probe!.id}, 6, 0, 0, 0)`);
    await world.rows(`insert into probe_hours (hour, probe_id, reported, answered, sent, lost, rtt_median_sum_us, rtt_medians)
      values (${at}, ${probe!.id}, 1, 1, 6, 0, 0, 0)`);
    await world.rows(`with episode as (
        insert into alert_episodes (site_id, kind, subject_key, subject_name, opened_at, details, resolved_at, resolution)
        values (${world.siteId}, 'probe_down', 'probe:1', 'Gateway', ${at}, '{}', ${at}, 'recovered') returning id)
      insert into alert_notifications (episode_id, transition, channel_id, created_at)
      select id, 'opened', ${channel!.id}, ${at} from episode union all select null, 'test', ${channel!.id}, ${at}`);
  }
  // Open for a long time: an open episode does not expire.
  await world.rows(`insert into alert_episodes (site_id, kind, subject_key, subject_name, opened_at, details)
    values (${world.siteId}, 'sensor_silent', 'sensor:1', 'node-1', svc_now() - interval '1 year', '{}')`);
  const retention = createRetention({
    db,
    tables: keptTables,
    sweeps: [],
    clock: systemClock,
    reporter: silentReporter,
  });
  await retention.runOnce();
  await retention.loop.stop();
  const left = async (table: string) => (await world.rows(`select 1 from ${table}`)).length;
  for (const table of ['probe_results', 'probe_minutes', 'probe_hours'])
    assert.equal(await left(table), 1, table);
  assert.equal(await left('alert_episodes'), 2);
  assert.equal(await left('alert_notifications'), 2, 'notifications of an episode are deleted with it');
  assert.equal(await left('alert_channels'), 1);
  const older = await world.rows(
    "select 1 from alert_episodes where resolved_at < svc_now() - interval '3 months'",
  );
  assert.equal(older.length, 0);
});
