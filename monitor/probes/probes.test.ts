import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createMonitorWorld, createSpool, type MonitorWorld } from '#monitor/testing/index.ts';
import { type ProbeInput, type Probes, probesMax } from './index.ts';

let world: MonitorWorld;
let probes: Probes;
before(async () => {
  hour = Math.floor(Date.now() / 3_600_000) * 3600 - 7200;
  world = await createMonitorWorld();
  probes = world.probes;
});
after(() => world[Symbol.asyncDispose]());

const input: ProbeInput = {
  name: 'Gateway',
  kind: 'tcp',
  target: '192.0.2.1',
  port: 443,
  intervalSeconds: 10,
  timeoutMs: 1000,
};
const add = (change: Partial<ProbeInput> = {}) =>
  probes.add(systemActor, world.siteId, { ...input, ...change });
let hour: number;

function result(probe: number, index: number, change: Partial<ProbeResult> = {}): ProbeResult {
  const rtt = { minUs: 900, medianUs: 1000, maxUs: 3000 };
  return {
    probe,
    minute: hour + index * 60,
    firstSentMs: 5,
    sent: 6,
    lost: 0,
    rtt,
    failure: null,
    ...change,
  };
}
const down = { lost: 6, rtt: null, failure: 'timeout' as const };

/** Sends results like a sensor, with a minute of its captures. */
async function send(results: ProbeResult[], sensor = world.sensor): Promise<void> {
  const upload = { ...createSpool().upload([captureMinute({ minute: hour })]), probes: results };
  await world.send(upload, sensor);
  assert.equal(await world.send(upload, sensor), 'duplicate');
  await world.inbox.drain();
}

test('a result counts once even if sent repeatedly, sensors and parts of a minute add, and unmeasured minutes are unknown', async () => {
  const [first, second] = [await add(), await add({ name: 'Other' })];
  const other = await world.enrol('node-2');
  await send([
    result(first, 0),
    result(first, 1, down),
    result(first, 2, { firstSentMs: 30_000, sent: 3, lost: 3, rtt: null, failure: 'refused' }),
    result(second, 1, down),
    result(99_999, 0),
  ]);
  // The same results in another upload, as after a failed sync, with results of another sensor and of a restart.
  await send([result(first, 0), result(first, 2, { firstSentMs: 0, sent: 2, lost: 1, failure: 'timeout' })]);
  await send([result(first, 1, { ...down, lost: 4, sent: 4 }), result(first, 61)], other);
  const range = [hour * 1000, hour * 1000 + 7_200_000] as const;
  const found = new Map(
    (await probes.readAvailability(world.siteId, ...range)).map((one) => [one.probeId, one]),
  );
  const { rttUs, ...figures } = found.get(first)!;
  assert.deepEqual(figures, { probeId: first, minutesUp: 3, minutesKnown: 4, sent: 27, lost: 14 });
  assert.equal(rttUs, 1000);
  assert.deepEqual(found.get(second), {
    probeId: second,
    minutesUp: 0,
    minutesKnown: 1,
    sent: 6,
    lost: 6,
    rttUs: null,
  });
  // Both probes were down in minute 1, so the site was down; unmeasured time is in no figure.
  assert.deepEqual([found.get(null)?.minutesUp, found.get(null)?.minutesKnown], [3, 4]);
  const days = await probes.readAvailability(world.siteId, range[0] - 2 * 86_400_000, range[1]);
  assert.deepEqual(
    new Map(days.map((one) => [one.probeId, one])),
    found,
    'a long range is read from hours with the same result',
  );
  const steps = await probes.readHistory(first, range[0], range[1], 3600);
  assert.deepEqual(
    steps.map((step) => [step.startMs, step.minutesUp, step.minutesKnown, step.rttMaxUs]),
    [
      [hour * 1000, 2, 3, 3000],
      [(hour + 3600) * 1000, 1, 1, 3000],
    ],
  );
  assert.deepEqual(await probes.readHistory(first, range[0] - 2 * 86_400_000, range[1], 3600), steps);
  const views = await probes.listSensorViews(first, ...range);
  assert.deepEqual(
    views.map((view) => [view.hostName, view.sent, view.lost]),
    [
      ['node-1', 17, 10],
      ['node-2', 10, 4],
    ],
  );
});

test('results of another site’s probe and of past years are left out; future ones are sent again later', async () => {
  const probe = await add({ name: 'Clock' });
  const elsewhere = await world.sites.create(systemActor, 'Elsewhere');
  const foreign = await probes.add(systemActor, elsewhere.id, input);
  await send([result(probe, 0, { minute: hour - 400 * 86_400 }), result(foreign, 0)]);
  await assert.rejects(send([result(probe, 0, { minute: hour + 3 * 86_400 })]), /more than 5 minutes ahead/);
  const rows = await world.rows('select 1 from probe_results where probe_id = any($1)', [[probe, foreign]]);
  assert.equal(rows.length, 0);
});

test('NET-9.2: the plan has the active probes of the site only', async () => {
  const paused = await add({ name: 'Paused' });
  const removed = await add({ name: 'Removed' });
  const change = { name: 'Paused for now', intervalSeconds: 30, timeoutMs: 200, isEnabled: false };
  assert.equal(await probes.change(systemActor, world.siteId, paused, change), true);
  assert.equal(await probes.change(systemActor, world.siteId + 1, paused, change), false);
  assert.equal(await probes.remove(systemActor, world.siteId + 1, removed), false);
  assert.equal(await probes.remove(systemActor, world.siteId, removed), true);
  const fields = await probes.section.read({ siteId: world.siteId, node: null });
  assert.equal(fields.probes_version, 1);
  const planned = fields.probes!;
  assert.ok(planned.length > 0);
  assert.ok(!planned.some((one) => one.id === paused || one.id === removed));
  const listed = await probes.list(world.siteId);
  assert.equal(listed.find((one) => one.id === paused)?.isEnabled, false);
  assert.equal(
    listed.find((one) => one.id === removed),
    undefined,
  );
});

test('a new probe is validated, viewers can not add one, and a site has at most 32', async () => {
  const bad: [Partial<ProbeInput>, RegExp][] = [
    [{ name: ' ' }, /name/],
    [{ kind: 'quic' }, /kind/],
    [{ port: null }, /port/],
    [{ port: 70_000 }, /port/],
    [{ target: '192.0.2' }, /address or a host name/],
    [{ target: 'a b' }, /address or a host name/],
    [{ kind: 'http', target: 'ftp://example.com' }, /complete URL/],
    [{ kind: 'http', target: 'https://a:b@example.com' }, /password/],
    [{ kind: 'dns', question: '' }, /name to query/],
    [{ intervalSeconds: 4 }, /interval/],
    [{ timeoutMs: 50 }, /timeout/],
    [{ intervalSeconds: 5, timeoutMs: 6000 }, /longer than the interval/],
  ];
  for (const [change, message] of bad) {
    await assert.rejects(add(change), (error: Error) => {
      assert.match(error.message, message);
      return hasCode(error, 'probes.invalid');
    });
  }
  await assert.rejects(probes.add({ kind: 'person', id: 1, role: 'viewer' }, world.siteId, input), (error) =>
    hasCode(error, 'operators.read_only'),
  );
  const dns = await add({ kind: 'dns', target: '2001:DB8::1', port: null, question: 'Example.COM.' });
  const kept = await probes.find(world.siteId, dns);
  assert.deepEqual([kept?.target, kept?.port, kept?.question], ['2001:db8::1', 53, 'example.com']);
  const count = (await probes.list(world.siteId)).length;
  await Promise.all(Array.from({ length: probesMax - count }, (_, i) => add({ name: `Probe ${i}` })));
  await assert.rejects(add(), (error) => hasCode(error, 'probes.too_many'));
});
