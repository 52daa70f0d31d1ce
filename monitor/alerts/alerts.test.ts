import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { hasCode } from '#common/errors/index.ts';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createProbes } from '#monitor/probes/index.ts';
import { captureMinute, createMonitorWorld, createSpool, type MonitorWorld } from '#monitor/testing/index.ts';
import { type MailServer, startMailServer } from '#service-kit/mail/testing/start-mail-server.ts';
import { createTestSecrets } from '#service-kit/secrets/testing/test-secrets.ts';
import { createSystem } from '#service-kit/system/index.ts';
import { type Receiver, startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';
import { type Alerts, type AlertsDeps, alertSecrets, createAlerts } from './index.ts';

let startMs: number;
let world: MonitorWorld;
let alerts: Alerts;
let second: Alerts;
let receiver: Receiver;
let mailServer: MailServer;
let deps: AlertsDeps;
const log: string[] = [];

before(async () => {
  startMs = Math.floor(Date.now() / 60_000) * 60_000 + 5000;
  [world, receiver, mailServer] = await Promise.all([
    // Five seconds into a minute, and there it stands: alerts depend on seconds.
    createMonitorWorld({ standsAtMs: startMs }),
    startReceiver(),
    startMailServer(),
  ]);
  const db = () => world.database.db;
  deps = {
    db,
    secrets: createTestSecrets({ db, program: 'monitor', columns: alertSecrets }),
    clock: systemClock,
    reporter: createReporter({ program: 'monitor', write: (line) => log.push(line) }),
    sensors: world.sensors,
    traffic: world.traffic,
    probes: createProbes({ db, reader: db }),
    scans: world.scans,
    vulnerabilities: world.vulnerabilities,
    system: createSystem({ db, clock: systemClock, reporter: silentReporter, folder: '/' }),
    feeds: { all: [] },
    inbox: world.inbox,
    handOff: { listFailing: async () => [] },
    post: { send: async () => null },
    rules: { allowPrivate: true },
    mail: { url: mailServer.url, from: 'Monitor <monitor@example.net>' },
    consoleUrl: 'https://monitor.example.net',
  };
  alerts = createAlerts(deps);
  second = createAlerts(deps);
});
after(async () => {
  await Promise.all([
    world[Symbol.asyncDispose](),
    receiver[Symbol.asyncDispose](),
    mailServer[Symbol.asyncDispose](),
  ]);
});

const run = (text: string) => world.rows(text);
/** As if the last contact of the sensor was this long ago, while the monitor was watching. */
async function heard(secondsAgo: number, watchedSeconds = 3600): Promise<void> {
  await run(`insert into sensor_contacts (sensor_id, last_contact_at, sensor_version, spool_id, sequence)
    values (${world.sensor.id}, svc_now() - interval '${secondsAgo} seconds', '0.1.0', gen_random_uuid(), 1)
    on conflict (sensor_id) do update set last_contact_at = excluded.last_contact_at`);
  await run(`insert into alert_watch (last_run_at, watching_since) values (svc_now(), svc_now() - interval '${watchedSeconds} seconds')
    on conflict (is_only) do update set last_run_at = svc_now(), watching_since = excluded.watching_since`);
}
const goodFor = (seconds: number) =>
  run(
    `update alert_episodes set good_since = svc_now() - interval '${seconds} seconds' where good_since is not null`,
  );
/** Two processes judge at the same time; the holder of the lease succeeds. */
async function judge(): Promise<void> {
  await Promise.all([alerts.loop.runOnce(), second.loop.runOnce()]);
}
const open = async () =>
  (await alerts.listOpen(world.siteId, 10)).map((one) => `${one.kind} ${one.subjectName}`);
const deliver = () => Promise.all([alerts.sender.drain(), second.sender.drain()]);
const dueNow = () =>
  run("update alert_notifications set next_attempt_at = svc_now() where status = 'pending'");

test('a silent sensor is one episode for any number of judges, sent once to each channel, and again when it is resolved', async () => {
  const { secret } = await alerts.addChannel(systemActor, {
    kind: 'webhook',
    name: 'Pager',
    settings: { url: `${receiver.url}/503/200` },
  });
  receiver.learn(secret!);
  await alerts.addChannel(systemActor, {
    kind: 'email',
    name: 'Night',
    settings: { recipients: 'a@example.net, later@example.net' },
  });
  await heard(400, 100);
  await judge();
  assert.deepEqual(
    await open(),
    [],
    'after a pause of the monitor itself, nothing is known about silent sensors',
  );
  await heard(400);
  await Promise.all([judge(), judge()]);
  assert.deepEqual(await open(), ['sensor_silent node-1']);
  await judge();
  await deliver();
  assert.equal(receiver.received.length, 1, 'the receiver failed');
  assert.equal(mailServer.mails.length, 0, 'the mail server asks for a retry');
  await dueNow();
  await deliver();
  const [first, again] = receiver.received;
  assert.equal(first?.id, again?.id);
  assert.deepEqual([again?.fitting, again?.signatures, again?.body.type], [1, 1, 'alert.opened']);
  assert.match(String(again?.body.data.summary), /^Sensor silent: node-1: no contact for 6 min$/);
  const [mail] = mailServer.mails;
  assert.equal(mail?.subject, 'Sensor silent: node-1 (Test site)');
  assert.match(mail!.body, /no contact for 6 min[\s\S]*https:\/\/monitor\.example\.net\/alerts/);
  assert.deepEqual(mail?.to, ['a@example.net', 'later@example.net']);

  await heard(5);
  await judge();
  await heard(150);
  await goodFor(100);
  await judge();
  assert.equal((await open()).length, 1, 'unknown facts never resolve an episode');
  await heard(5);
  await judge();
  await goodFor(59);
  await judge();
  assert.equal((await open()).length, 1);
  await goodFor(60);
  await Promise.all([judge(), judge()]);
  assert.deepEqual(await open(), []);
  await deliver();
  await dueNow();
  await deliver();
  assert.deepEqual(
    receiver.received.map((one) => one.body.type),
    ['alert.opened', 'alert.opened', 'alert.resolved'],
  );
  assert.deepEqual(
    mailServer.mails.map((one) => one.subject),
    ['Sensor silent: node-1 (Test site)', 'Resolved: Sensor silent: node-1 (Test site)'],
  );
  const rows = await run('select 1 from alert_notifications');
  assert.equal(rows.length, 4, 'one for each transition and channel');
  const [past] = await alerts.listResolved(world.siteId, 10);
  assert.equal(past?.resolution, 'recovered');
  const said = log.join('\n');
  assert.ok(!said.includes('p@ss') && !said.includes(secret!), 'no secret is in the log');
  const errors = await run("select last_error from alert_notifications where last_error like '%p@ss%'");
  assert.equal(errors.length, 0, 'what a server says is not kept');
});

test('a muted subject sends no notification, neither "opened" nor "resolved", and the acknowledgement is stored', async () => {
  const told = receiver.received.length;
  await heard(400);
  await judge();
  const [episode] = await alerts.listOpen(null, 10);
  await deliver();
  await dueNow();
  await deliver();
  assert.equal(receiver.received.length, told + 1);
  const viewer = { kind: 'person', id: 1, role: 'viewer' } as const;
  await assert.rejects(alerts.mute(viewer, episode!.id, 'v', 1), (error) =>
    hasCode(error, 'operators.read_only'),
  );
  await assert.rejects(alerts.acknowledge(viewer, episode!.id, 'v', ''), (error) =>
    hasCode(error, 'operators.read_only'),
  );
  assert.equal(await alerts.acknowledge(systemActor, episode!.id, 'Ada', ' on it '), true);
  assert.equal(await alerts.acknowledge(systemActor, 99_999, 'Ada', ''), false);
  assert.equal(await alerts.mute(systemActor, episode!.id, 'Ada', 8), true);
  const [shown] = await alerts.listOpen(null, 10);
  assert.deepEqual([shown?.acknowledgedBy, shown?.note], ['Ada', 'on it']);
  assert.equal(shown!.mutedUntilMs, startMs + 8 * 3_600_000);
  await heard(5);
  await judge();
  await goodFor(60);
  await judge();
  await heard(400);
  await judge();
  assert.equal((await open()).length, 1, 'a muted subject still has an episode');
  await deliver();
  await dueNow();
  await deliver();
  const types = receiver.received.slice(told).map((one) => one.body.type);
  assert.deepEqual(
    types,
    ['alert.opened', 'alert.resolved'],
    'channels that received "opened" receive "resolved"',
  );
  await alerts.mute(systemActor, episode!.id, 'Ada', 0);
  await heard(5);
  await judge();
  await goodFor(60);
  await judge();
  await deliver();
  assert.equal(receiver.received.length, told + 2, '"resolved" goes only to channels that received "opened"');
});

test('NET-2.2.6: lost packets, a probe without answers and a full disk are episodes; unmeasured values are not', async () => {
  await heard(5);
  const minute = (ago: number) => (Math.floor(startMs / 60_000) - ago) * 60;
  const spool = createSpool();
  for (const ago of [1, 2]) {
    const totals = { ipPackets: 9800, parserDropped: 100, kernelDropped: 100 };
    await world.send(spool.upload([captureMinute({ minute: minute(ago), totals })]));
  }
  await world.send(
    spool.upload([captureMinute({ minute: minute(1), capture: 'br0', totals: { parserDropped: 5000 } })]),
  );
  await world.inbox.drain();
  const probes = createProbes({ db: () => world.database.db, reader: () => world.database.db });
  const input = { kind: 'icmp', target: '192.0.2.1', intervalSeconds: 10, timeoutMs: 1000 };
  const down = await probes.add(systemActor, world.siteId, { ...input, name: 'Gateway' });
  const fresh = await probes.add(systemActor, world.siteId, { ...input, name: 'New' });
  const results = (probe: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      probe,
      minute: minute(i + 2),
      firstSentMs: 0,
      sent: 6,
      lost: 6,
      rtt: null,
      failure: 'timeout' as const,
    }));
  const measured = {
    siteId: world.siteId,
    sensorId: world.sensor.id,
    results: [...results(down, 3), ...results(fresh, 2)],
  };
  await probes.consumer.prepare!([measured]);
  await world.database.db.transaction().execute((trx) => probes.consumer.apply(trx, [measured]));
  const condition = {
    observedAtMs: startMs,
    spoolPendingBytes: 10,
    spoolBytesMax: 100,
    spoolPendingUploads: 1,
    diskFreeBytes: 4,
    diskBytes: 100,
    isPaused: false,
  };
  await world.sensors.noteCondition(world.sensor.id, condition);
  await judge();
  assert.deepEqual((await open()).sort(), [
    'capture_loss eth0 of node-1',
    'probe_down Gateway',
    'storage_pressure node-1',
  ]);
  const loss = (await alerts.listOpen(null, 10)).find((one) => one.kind === 'capture_loss');
  assert.deepEqual(loss?.details, { kernel_dropped: 200, lost_share: 0.02, minutes: 2, parser_dropped: 200 });

  // An episode is resolved when its cause ends: the probe at once when it is removed, the disk after good values.
  await probes.remove(systemActor, world.siteId, down);
  await world.sensors.noteCondition(world.sensor.id, { ...condition, diskFreeBytes: 50 });
  await run("update sensor_conditions set received_at = svc_now() - interval '1 hour'");
  await judge();
  assert.deepEqual((await open()).sort(), ['capture_loss eth0 of node-1', 'storage_pressure node-1']);
  await world.sensors.noteCondition(world.sensor.id, { ...condition, diskFreeBytes: 50 });
  await judge();
  await goodFor(120);
  await judge();
  assert.deepEqual(await open(), ['capture_loss eth0 of node-1']);
});

test('channels are validated; a test is delivered; pending notifications of a disabled channel are dropped', async () => {
  const bad = [
    [{ kind: 'email', name: 'x', settings: { recipients: 'operator' } }, 'alerts.invalid'],
    [{ kind: 'email', name: 'x', settings: { recipients: '' } }, 'alerts.invalid'],
    [{ kind: 'email', name: ' ', settings: { recipients: 'a@example.net' } }, 'alerts.invalid'],
    [
      { kind: 'email', name: 'x', settings: { recipients: 'a@example.net\r\nBcc:b@example.net' } },
      'alerts.invalid',
    ],
    [{ kind: 'webhook', name: 'x', settings: { url: 'ftp://example.net' } }, 'webhooks.invalid'],
  ] as const;
  for (const [input, code] of bad) {
    await assert.rejects(alerts.addChannel(systemActor, input), (error) => hasCode(error, code));
  }
  const strict = createAlerts({ ...deps, rules: { allowPrivate: false }, mail: null });
  const inside = { kind: 'webhook', name: 'x', settings: { url: 'https://127.0.0.1/' } };
  await assert.rejects(strict.addChannel(systemActor, inside), (error) => hasCode(error, 'webhooks.invalid'));
  const before = await alerts.listChannels();
  const pager = before.find((one) => one.kind === 'webhook')!;
  const night = before.find((one) => one.kind === 'email')!;
  assert.ok(!JSON.stringify(before).includes('whsec'), 'no page gets a secret');
  assert.equal(await alerts.sendTest(systemActor, pager.id), true);
  await deliver();
  assert.equal(receiver.received.at(-1)?.body.type, 'alert.test');
  await alerts.sendTest(systemActor, night.id);
  await dueNow();
  await strict.sender.drain();
  const failed = (await alerts.listChannels()).find((one) => one.id === night.id);
  assert.match(failed!.lastError!, /SVC_SMTP_URL/);
  await alerts.sendTest(systemActor, night.id);
  await alerts.setChannelEnabled(systemActor, night.id, false);
  assert.equal((await alerts.listChannels()).find((one) => one.id === night.id)?.waiting, 0);
  assert.equal(await alerts.deleteChannel(systemActor, night.id), true);
  assert.equal(await alerts.deleteChannel(systemActor, night.id), false);
});

test('each channel accepts five tests in ten minutes, also with concurrent requests', async () => {
  const add = async (name: string) => {
    await alerts.addChannel(systemActor, {
      ...{ kind: 'email', name, settings: { recipients: 'ops@example.org' } },
    });
    return (await alerts.listChannels()).find((one) => one.name === name)!.id;
  };
  const [first, second] = [await add('Tested often'), await add('Tested once')];
  const tried = await Promise.allSettled(
    Array.from({ length: 8 }, () => alerts.sendTest(systemActor, first)),
  );
  const refused = tried.filter((one) => one.status === 'rejected');
  assert.equal(refused.length, 3);
  for (const { reason } of refused) {
    assert.ok(hasCode(reason, 'alerts.test_limit'));
    assert.match(reason.message, /5 tests within ten minutes\. Wait/);
  }
  assert.equal(await alerts.sendTest(systemActor, second), true);
  assert.equal(await alerts.sendTest(systemActor, 999_999), false);
  await run("update alert_notifications set created_at = created_at - interval '601 seconds'");
  assert.equal(await alerts.sendTest(systemActor, first), true);
});
