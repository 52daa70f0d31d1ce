// Slow: replays captures and floods through rings and kernel, each twice.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openCaptureFile } from '#sensor/capture-files/index.ts';
import {
  createFlood,
  floodClasses,
  packetsAtThreshold,
  startSecond,
} from '#sensor/testing/attack-traffic.ts';
import { corpusFolder } from '#sensor/testing/corpus.ts';
import {
  createDetectingSensor,
  detectionPlan,
  type SensorSetting,
} from '#sensor/testing/detecting-sensor.ts';
import { KernelRuns } from '#sensor/testing/kernel-runs.ts';
import { background, detected, divided, flood, plan, seconds } from '#sensor/testing/live-attacks.ts';
import { createOrdinary } from '#sensor/testing/ordinary-traffic.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';

const needsRoot = process.getuid?.() === 0 ? false : 'needs root';
const nothing = { prefixes: [], addresses: [], senders: false };
const folder = join(corpusFolder(), 'detection');

/** A sensor whose interface is counted in the kernel too. */
function kernelSensor(t: TestContext, setting: SensorSetting = {}) {
  const kernel = new KernelRuns(true);
  t.after(() => kernel.close());
  return createDetectingSensor(temporaryFolder(t), { ...setting, kernel });
}

/** The frames of a capture of the corpus, from the fifth second of a sensor on. */
function framesOf(name: string): { at: number; bytes: Uint8Array }[] {
  const file = openCaptureFile(join(folder, `${name}.pcap.gz`));
  const frames: { at: number; bytes: Uint8Array }[] = [];
  while (file.next())
    frames.push({
      at: file.seconds + file.nanoseconds / 1e9,
      bytes: file.bytes.slice(file.offset, file.offset + file.capturedLength),
    });
  file.close();
  const shift = startSecond + 5 - Math.floor(frames[0]!.at);
  return frames.map(({ at, bytes }) => ({ at: at + shift, bytes })).sort((a, b) => a.at - b.at);
}

/** Each incident as one sees it first. */
async function incidentsOf(
  one: Awaited<ReturnType<typeof createDetectingSensor>>,
  frames: readonly { at: number; bytes: Uint8Array }[],
  protect: string,
): Promise<string[]> {
  const thresholds = JSON.parse(readFileSync(join(folder, 't100.json'), 'utf8')) as Record<string, unknown>;
  one.follow(
    detectionPlan(
      { ...thresholds, additional_cidrs: [protect] },
      { local_cidrs: [protect], protected_targets: [] },
    ),
  );
  await one.arrive([frames.values()], frames.at(-1)!.at + 5);
  const first = one.incidents().filter(({ revision }) => revision === 1);
  await one.stop();
  return first
    .map(({ target, direction, class: name, severity, startedAtMs, detectedAtMs, peak, vectors }) => {
      const classes = severity === 'attack' ? vectors.map((one) => `${one.class} ${one.ports}`) : [];
      const times = [seconds(startedAtMs), seconds(detectedAtMs), Math.round(peak.pps)];
      return [target.value, direction, name, severity, ...times, ...classes].join(' ');
    })
    .sort();
}

for (const name of [
  ...[
    'amp-ports-2x-spread',
    'esp-6peers',
    'gameserver-600players',
    'gre-fragmented-tunnel',
    'hscan-24-port22',
  ],
  ...['outbound-spoofed-syn-30x', 'protos', 'pulse-0.9s-every5s-10x', 'quic-8', 'v6-64rand-1.67udp'],
  ...['vector-rotate', 'vxlan8472-2nodes', 'web-nokeepalive-150cps-short', 'wg-hub-30clients'],
])
  test(`NET-1.1: ${name}: the verdicts are the same where the kernel counts`, {
    skip: needsRoot || !existsSync(folder),
  }, async (t) => {
    const frames = framesOf(name);
    const protect = name.startsWith('v6') ? '2001:db8:5:7::/64' : '203.0.113.0/24';
    const ring = await incidentsOf(await createDetectingSensor(temporaryFolder(t)), frames, protect);
    assert.deepEqual(await incidentsOf(await kernelSensor(t), frames, protect), ring);
  });

test('NET-1.1: where the kernel counts, a flood of each class is decided within 3 s with its whole rate, of two threads too', {
  skip: needsRoot,
}, async (t) => {
  for (const [i, name] of floodClasses.filter((one) => one !== 'connection_flood').entries()) {
    const one = await kernelSensor(t, { members: 1 + (i % 2) });
    one.follow(plan);
    const from = 3 + ((i * 0.37) % 1);
    await one.play([background(12), flood({ class: name }, from, 12)], 7);
    const attacks = detected(one);
    assert.deepEqual(
      attacks.map(({ class: found, target }) => [found, target.value]),
      [[name, '192.0.2.7']],
      `${name} from ${from}`,
    );
    const took = seconds(attacks[0]!.detectedAtMs) - from;
    assert.ok(took <= 3, `${name} from ${from}: ${took} s`);
    await one.stop();
  }
});

test('NET-1.1: a flood of which the ring loses nine tenths has its whole rate, and what is ordinary stays so', {
  skip: needsRoot,
}, async (t) => {
  const shape = { class: 'udp_flood', version: 4, direction: 'inbound', ratio: 20 } as const;
  const rate = packetsAtThreshold(shape, divided) * shape.ratio;
  const one = await kernelSensor(t);
  one.follow(plan);
  one.keep(10);
  const hub = createOrdinary('WireGuard hub', { version: 4, thresholds: divided, seed: 2 });
  const ordinary = { step: hub.step, perSecond: hub.perSecond * 6, from: 0, to: 30 };
  await one.play([ordinary], 10);
  assert.deepEqual(detected(one), []);
  await one.play([{ step: createFlood(shape, 1), perSecond: rate, from: 12, to: 30 }], 16);
  const [attack, ...others] = detected(one);
  assert.deepEqual([attack!.class, others], ['udp_flood', []]);
  assert.ok(attack!.peak.pps >= rate * 0.95, `${attack!.peak.pps} of ${rate}`);
  await one.stop();
});

test('what has little traffic costs the engine nothing: its packets are not told to the counters', {
  skip: needsRoot,
}, async (t) => {
  const one = await kernelSensor(t);
  one.follow(plan);
  await one.play([background(8)], 4);
  assert.deepEqual(one.watched(), nothing);
  await one.play([background(8), flood({}, 4.1, 6)], 5);
  assert.deepEqual(one.watched(), { ...nothing, addresses: ['192.0.2.7'] });
  await one.play([{ ...background(80), from: 5 }], 80);
  assert.deepEqual(one.watched(), { ...nothing, addresses: ['192.0.2.7'] });
  await one.play([{ ...background(120), from: 80 }], 110);
  assert.deepEqual(one.watched(), nothing);
  await one.stop();
});

test('what is always busy and ordinary is let go, and a flood at it is decided within 3 s all the same', {
  skip: needsRoot,
}, async (t) => {
  const one = await kernelSensor(t);
  one.follow(plan);
  const hub = createOrdinary('WireGuard hub', { version: 4, thresholds: divided, seed: 2 });
  const ordinary = { step: hub.step, perSecond: hub.perSecond * 6, from: 0, to: 200 };
  await one.play([ordinary], 60);
  assert.notDeepEqual(one.watched(), nothing);
  await one.play([{ ...ordinary, from: 60 }], 120);
  assert.deepEqual(one.watched(), nothing);
  assert.deepEqual(detected(one), []);
  await one.play([{ ...ordinary, from: 120 }, flood({ class: 'udp_flood' }, 120.6, 130)], 124);
  const [attack, ...others] = detected(one);
  assert.deepEqual([attack!.class, others], ['udp_flood', []]);
  assert.ok(seconds(attack!.detectedAtMs) - 120.6 <= 3, `${seconds(attack!.detectedAtMs) - 120.6} s`);
  await one.stop();
});
