// Slow: fills links for seconds.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { readLinkBps } from '#sensor/interfaces/index.ts';
import {
  createLookups,
  dividedThresholds,
  type Stream,
  startSecond,
} from '#sensor/testing/attack-traffic.ts';
import { createDetectingSensor, detectionPlan } from '#sensor/testing/detecting-sensor.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';

const divided = dividedThresholds(500);
const finite = (values: object) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, Number.isFinite(value) ? value : null]),
  );
const thresholds = { inbound: finite(divided.inbound), outbound: finite(divided.outbound) };
const plan = detectionPlan({ ...thresholds, additional_cidrs: ['198.18.0.0/16'] });
/** Over eight prefixes, each at 1.2 times the threshold of one address. */
const perSecond = divided.inbound.udp_pps * 1.2 * 8;

function carpet(from: number, to: number): Stream {
  const random = seededRandom(3);
  let next = 0;
  const step = () => {
    next += 1;
    const target = `198.18.${next % 8}.${1 + (Math.floor(next / 8) % 40)}`;
    const source = `11.${Math.floor(random() * 256)}.1.9`;
    const ends = { from: source, fromPort: 7777, to: target, toPort: 80 };
    return [ethernet(udp(ends, new Uint8Array(12)))];
  };
  return { step, perSecond, from, to };
}

const background = (from: number, to: number): Stream => ({ step: createLookups(9), perSecond: 2, from, to });
const sensor = (t: TestContext, options: Parameters<typeof createDetectingSensor>[1] = {}, folder = '') =>
  createDetectingSensor(folder || temporaryFolder(t), options);

for (const members of [1, 2])
  test(`NET-1.1: live with ${members} threads, an uplink that is attacked as a whole is one incident of the capture, and goes on after a restart`, async (t) => {
    const folder = temporaryFolder(t);
    const one = await sensor(t, { members }, folder);
    one.follow(plan);
    const from = 390;
    await one.play([background(0, 600), carpet(from, 600), background(0, 600)], from + 25);
    const told = one.incidents();
    assert.deepEqual(
      [
        ...new Set(
          told.map(
            ({ target, severity, direction }) => `${target.kind} ${target.value} ${severity} ${direction}`,
          ),
        ),
      ],
      ['capture eth0 attack inbound'],
    );
    const [first] = told;
    assert.ok(first!.detectedAtMs <= (startSecond + from + 6) * 1000 + 500);
    assert.ok(first!.remotes.length > 0);
    assert.deepEqual(first!.threshold, { metric: 'pps', value: divided.inbound.pps * 2 });
    const minute = one.minutes.find(
      ({ minute: at }) => at <= startSecond + from && at + 60 > startSecond + from,
    );
    assert.ok(
      (minute?.detector?.rows ?? []).every(({ attackPackets }) => attackPackets === 0),
      'no part of it belongs to an address',
    );
    await one.stop();
    // The sensor that starts again knows nothing of what is usual: the incident keeps its threshold.
    const later = { from: 430, uptimeFrom: 430_000 };
    const again = await sensor(t, { members, ...later }, folder);
    again.follow(plan);
    await again.play([background(430, 800), carpet(430, 530)], 545);
    const after = again.incidents();
    assert.deepEqual([...new Set(after.map(({ id }) => id))], [first!.id]);
    assert.ok(after.every(({ state }) => state === 'active'));
    await again.play([], 600);
    const end = again.incidents().at(-1)!;
    assert.deepEqual([end.id, end.state], [first!.id, 'recovered']);
    assert.equal(end.recoveredAtMs, (startSecond + 590) * 1000);
    await again.stop();
  });

test('NET-1.1: live, a link that is filled to more than 80 % is an incident within 6 seconds, also of a young sensor', async (t) => {
  // Packets of 40 bytes take 84 of the link.
  const one = await sensor(t, { linkBps: (perSecond * 84 * 8) / 0.9 });
  one.follow(plan);
  await one.play([background(0, 100), carpet(5.3, 20)], 20);
  const [first] = one.incidents();
  assert.deepEqual([first!.target, first!.class], [{ kind: 'capture', value: 'eth0' }, 'udp_flood']);
  assert.ok(first!.detectedAtMs <= (startSecond + 11.5) * 1000);
  await one.stop();
  const wide = await sensor(t, { linkBps: (perSecond * 84 * 8) / 0.7 });
  wide.follow(plan);
  await wide.play([background(0, 100), carpet(5.3, 20)], 20);
  assert.deepEqual(wide.incidents(), []);
  await wide.stop();
});

test('the speed of a link is what its driver knows; of tun and tap, and where there is none, it is unknown', (t) => {
  const folder = temporaryFolder(t);
  const link = (name: string, speed: string | null, more: Record<string, string> = {}) => {
    mkdirSync(join(folder, name));
    for (const [file, text] of Object.entries({ ...(speed === null ? {} : { speed }), ...more }))
      writeFileSync(join(folder, name, file), text);
    return readLinkBps(name, folder);
  };
  assert.equal(link('eth0', '10000\n'), 10e9);
  assert.equal(link('ens3', '-1\n'), null);
  assert.equal(link('old0', '4294967295\n'), null);
  assert.equal(link('none', null), null);
  assert.equal(link('tap0', '10\n', { tun_flags: '0x1002\n' }), null);
  assert.equal(readLinkBps('absent', folder), null);
});
