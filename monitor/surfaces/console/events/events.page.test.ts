import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

test('NET-6: events are filtered by kind, sensor and time, and each is on one page', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId, database } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  await monitor.sensors.enrol({ token, host_name: 'node-1.example', node: 'n1', sensor_version: '0.1.0' });
  await database.pool.query(
    `insert into events (kind, site_id, sensor_id, occurred_at, details)
     select case when n % 10 = 0 then 'telemetry_rejected' else 'ip_conflict_opened' end, $1,
       case when n % 10 = 0 then 1 end, timestamptz '2026-11-01' + n / 4 * interval '1 hour', jsonb_build_object('number', n)
     from generate_series(1, 250) n`,
    [siteId],
  );
  const visitor = await server.signIn('viewer');
  const numbers = (text: string) =>
    [...text.matchAll(/number <span>(\d+)</g)].map((match) => Number(match[1]));
  const seen: number[] = [];
  let path: string | undefined = `/sites/${siteId}/events`;
  while (path !== undefined) {
    const { text } = await visitor.get(path);
    seen.push(...numbers(text));
    path = /href="([^"]*after=\d+)" class="button">Next/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 250 }, (_, index) => 250 - index),
  );

  const read = async (query: string) => numbers((await visitor.get(`/sites/${siteId}/events?${query}`)).text);
  const tens = Array.from({ length: 25 }, (_, index) => 250 - index * 10);
  assert.deepEqual(await read('kind=telemetry_rejected'), tens);
  assert.deepEqual(await read('sensor=1'), tens);
  assert.deepEqual(await read('from=2026-11-01T01:00&to=2026-11-01T02:00'), [7, 6, 5, 4]);
  assert.deepEqual(await read('kind=nothing'), []);
  const { text } = await visitor.get(`/sites/${siteId}/events?format=json&kind=telemetry_rejected`);
  await database.pool.query(
    `insert into events (kind, site_id, details) values
       ('telemetry_rejected', $1, '{"sequence": 17, "spool_id": "a-spool", "error": "<no>"}'),
       ('ip_conflict_opened', $1, '{"address": "192.0.2.9", "mac_addresses": ["00:1b:21:00:00:0a", "00:1b:21:00:00:0b"]}')`,
    [siteId],
  );
  const words = (await visitor.get(`/sites/${siteId}/events`)).text.replaceAll(/<[^>]+>/g, '');
  assert.match(words, /Upload 17 of spool a-spool was skipped: &lt;no&gt;/);
  assert.match(words, /192\.0\.2\.9 is claimed by 00:1b:21:00:00:0a and 00:1b:21:00:00:0b/);
  const file = JSON.parse(text) as { is_complete: boolean; rows: { kind: string; sensor: string }[] };
  assert.equal(file.is_complete, true);
  assert.equal(file.rows.length, 25);
  assert.deepEqual(new Set(file.rows.map((row) => row.sensor)), new Set(['node-1.example']));
});
