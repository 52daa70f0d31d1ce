/** Alerts of the monitor itself: its disks, its loops and feeds, its inbox, hand-off. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { stopDatabaseClock } from '#monitor/testing/still-clock.ts';

let server: MonitorServer;
before(async () => {
  server = await startMonitorServer();
  await stopDatabaseClock(server.database, Date.UTC(2026, 10, 20, 10, 0, 5));
});
after(() => server[Symbol.asyncDispose]());

const run = (text: string) => server.database.pool.query(text);
async function open(): Promise<string[]> {
  const { alerts } = server.monitor;
  await alerts.loop.runOnce();
  // Of a site's page: what concerns all sites is there too.
  return (await alerts.listOpen(server.siteId, 20))
    .map(({ kind, subjectName }) => `${kind} ${subjectName}`)
    .sort();
}
async function recovered(): Promise<string[]> {
  await open();
  await run(
    "update alert_episodes set good_since = svc_now() - interval '3 minutes' where good_since is not null",
  );
  return open();
}

test('a disk that fills, a feed that fails and uploads that wait each open an alert of all sites, which ends with its cause', async () => {
  assert.deepEqual(await open(), []);
  await run(`insert into disk_samples values
    ('host-1', '/var/lib/svc', svc_now() - interval '2 hours', 500000000000, 1000000000000),
    ('host-1', '/var/lib/svc', svc_now(), 300000000000, 1000000000000)`);
  await run(`insert into leases (name, holder, term, acquired_at, expires_at, interval_seconds, failing_since, last_error)
    values ('sync_ops_ddos', 'a', 1, svc_now(), svc_now(), 5, svc_now() - interval '2 minutes', 'operations refused the token'),
      ('roll_up_hours', 'a', 1, svc_now(), svc_now(), 60, svc_now() - interval '119 seconds', 'once')`);
  assert.deepEqual(await open(), ['disk_filling /var/lib/svc on host-1', 'loop_failing feed Minute traffic']);
  const page = (await (await server.signIn('viewer')).get('/alerts')).text;
  assert.match(page, /Disk almost full: \/var\/lib\/svc on host-1/);
  assert.match(page, /300 GB free \(30\.0 %\), full in 3 h at the present speed/);
  assert.match(page, /it has failed for 2 min: operations refused the token/);
  const system = (await (await server.signIn('viewer')).get('/system')).text;
  assert.match(system, /Disk almost full: \/var\/lib\/svc on host-1: 300 GB free/);
  await run('delete from disk_samples where free_bytes > 300000000000');
  await run(
    "update leases set failing_since = null, last_error = null, succeeded_at = svc_now() where name = 'sync_ops_ddos'",
  );
  assert.deepEqual(await recovered(), []);
});

test('an action of hand-off that fails opens an alert of its site; a dry run and a rule that is off do not', async () => {
  const { handOff } = server.monitor;
  const input = {
    ...{ name: 'Blackhole', kind: 'webhook', prefixes: ['203.0.113.0/24'], direction: 'inbound' },
    ...{ minPps: '1000', minBps: '', holdSeconds: '600', url: 'https://example.net/hook' },
  };
  await handOff.addRule(systemActor, server.siteId, input);
  await run(`insert into hand_off_actions (site_id, rule_id, kind, is_dry_run, address, target, target_key, hold_seconds, attack, last_error)
    select site_id, id, kind, false, '203.0.113.9', target, 'a', 600, '{}', 'the receiver answered 500' from hand_off_rules`);
  assert.deepEqual(await open(), []);
  await run("update hand_off_rules set mode = 'on'");
  assert.deepEqual(await open(), ['hand_off_failing Blackhole']);
  const page = (await (await server.signIn('viewer')).get('/alerts')).text;
  assert.match(page, /an action fails: the receiver answered 500/);
  assert.match(page, new RegExp(`/sites/${server.siteId}/protection/hand-off`));
  await run("update hand_off_actions set last_error = null, state = 'active'");
  assert.deepEqual(await recovered(), []);
});
