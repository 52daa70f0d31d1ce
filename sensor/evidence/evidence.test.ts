// Slow: starts, kills and restarts sensors that record.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { createTestClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { decodeEvidence } from '#contracts/sensor-api/evidence.ts';
import type { Incident } from '#sensor/detector/index.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import {
  createFlood,
  createLookups,
  dividedThresholds,
  type FloodShape,
  packetsAtThreshold,
  type Stream,
  startSecond,
} from '#sensor/testing/attack-traffic.ts';
import {
  createDetectingSensor,
  detectionPlan,
  readIncidents,
  type SensorSetting,
} from '#sensor/testing/detecting-sensor.ts';
import { type FakeAnswer, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { createEvidenceFiles, filesBytesMax, filesMax } from './evidence-files.ts';
import { Sender } from './sender.ts';

const divided = dividedThresholds(200);
const thresholds = { inbound: { syn_pps: divided.inbound.syn_pps }, outbound: {} };
const takes = detectionPlan({ ...thresholds, takes_evidence: true });

function flood(shape: Partial<FloodShape>, from: number, to: number): Stream {
  const full: FloodShape = { class: 'syn_flood', version: 4, direction: 'inbound', ratio: 20, ...shape };
  return { step: createFlood(full, 1), perSecond: packetsAtThreshold(full, divided) * full.ratio, from, to };
}
const quiet = (to: number): Stream => ({ step: createLookups(9), perSecond: 5, from: 0, to });

type Scene = Awaited<ReturnType<typeof stage>>;

const stored = { status: 201, body: { receipt: 'stored' } };

/** A sensor and a monitor that stores what comes. */
async function stage(t: TestContext, setting: SensorSetting = {}) {
  let answer: (index: number) => FakeAnswer = () => stored;
  let asked = 0;
  const monitor = await startFakeMonitor(t, () => answer(asked++));
  const folder = temporaryFolder(t);
  const lines: string[] = [];
  const write = (line: string) => lines.push(line);
  const reporter = createReporter({ program: 'sensor', format: 'text', level: 'info', write });
  const sensor = await createDetectingSensor(folder, { monitor: monitor.url, reporter, ...setting });
  return {
    ...{ folder, monitor, lines, sensor },
    answer(as: (index: number) => FakeAnswer) {
      asked = 0;
      answer = as;
    },
  };
}

const filesIn = (folder: string) =>
  existsSync(join(folder, 'evidence')) ? readdirSync(join(folder, 'evidence')).sort() : [];
const unpack = (bytes: Uint8Array) => decodeEvidence(zstdDecompressSync(bytes));

/** Moves time on until it is so: files and answers take turns of their own. */
async function until({ sensor }: Scene, isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    await nextTurn();
    await sensor.clock.advance(1000);
  }
}

/** One file is whole on disk; before that its name is another. */
function isWritten({ sensor }: Scene): boolean {
  const { recording, waitingFiles } = sensor.evidence.status();
  return recording === 0 && waitingFiles === 1;
}

/** So many seconds of ordinary traffic from now on: `until` moves time on as often as files and answers need. */
async function calm({ sensor }: Scene, seconds: number): Promise<void> {
  const from = Math.ceil(sensor.clock.nowMs() / 1000) - startSecond;
  await sensor.play([{ ...quiet(from + seconds), from }], from + seconds);
}

/** What the sensor tells of incidents reaches the monitor. */
function deliver({ sensor }: Scene): IncidentObservation[] {
  return readIncidents(sensor.spool);
}

for (const members of [1, 2])
  test(`with ${members} threads, the first 2,000 packets after the detection are kept, sent when the attack is over, and gone when the monitor has them`, async (t) => {
    const scene = await stage(t, { members });
    const { sensor, monitor, folder, lines } = scene;
    sensor.follow(takes);
    const both =
      members === 1 ? [flood({}, 3.5, 12)] : [flood({ ratio: 10 }, 3.5, 12), flood({ ratio: 10 }, 3.5, 12)];
    await sensor.play([...both, quiet(12)], 14);
    await until(scene, () => lines.some((line) => line.includes('packets of an attack were recorded')));
    const told = deliver(scene);
    assert.ok(told.length > 0 && told.every(({ hasEvidence }) => hasEvidence));
    const [name, ...others] = filesIn(folder);
    assert.deepEqual([name, others], [`${told[0]!.id}.pcap.zst`, []]);
    assert.equal(monitor.requests.length, 0, 'not before the attack is over');
    await calm(scene, 80);
    const last = deliver(scene).at(-1)!;
    assert.deepEqual([last.state, last.hasEvidence], ['recovered', true]);
    await until(scene, () => filesIn(folder).length === 0);
    assert.equal(monitor.requests.length, 1);
    const request = monitor.requests[0];
    assert.equal(request!.path, `/agent/v1/evidence/${told[0]!.id}`);
    assert.equal(request!.headers['content-type'], 'application/vnd.tcpdump.pcap');
    assert.equal(request!.headers['content-encoding'], 'zstd');
    const { linkType, packets } = unpack(request!.body);
    assert.deepEqual([linkType, packets.length], [1, 2000]);
    const times = packets.map(({ seconds, nanoseconds }) => seconds * 1e9 + nanoseconds);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
    // 1,000 packets a second, of all threads together.
    assert.ok(times.at(-1)! - times[0]! < 2.2e9, `${times.at(-1)! - times[0]!}`);
    assert.ok(times[0]! >= (told[0]!.detectedAtMs - 1000) * 1e6, 'from the detection on');
    const isToVictim = packets.every(({ bytes }) =>
      Buffer.from(bytes.subarray(30, 34)).equals(Buffer.of(192, 0, 2, 7)),
    );
    assert.ok(isToVictim, 'nothing but what goes to the target');
    await sensor.stop();
  });

test('a file waits for the incidents in the spool, and for a monitor that knows its incident', async (t) => {
  const scene = await stage(t);
  const { sensor, monitor, folder } = scene;
  sensor.follow(takes);
  await sensor.play([flood({}, 3.5, 6), quiet(80)], 80);
  await until(scene, () => isWritten(scene));
  await calm(scene, 20);
  assert.equal(monitor.requests.length, 0, 'incidents wait in the spool');
  const waits = { takesEvidence: true, recording: 0, waitingFiles: 1, dropped: 0, why: null };
  assert.partialDeepStrictEqual(sensor.evidence.status(), waits);
  assert.ok(sensor.evidence.status().waitingBytes > 100);
  deliver(scene);
  scene.answer((index) =>
    index < 3 ? { status: 409, body: { error: { code: 'incident_unknown', message: 'no' } } } : stored,
  );
  await until(scene, () => filesIn(folder).length === 0);
  assert.equal(monitor.requests.length, 4);
  assert.partialDeepStrictEqual(sensor.evidence.status(), { waitingFiles: 0, waitingBytes: 0 });
  await sensor.stop();
});

test('a file that the monitor refuses for good is dropped and logged; any other answer keeps it', async (t) => {
  const scene = await stage(t);
  const { sensor, monitor, folder, lines } = scene;
  sensor.follow(takes);
  await sensor.play([flood({}, 3.5, 6), quiet(80)], 80);
  await until(scene, () => isWritten(scene));
  deliver(scene);
  const keeps: FakeAnswer[] = [
    { status: 503, body: { error: { code: 'evidence_store_unavailable', message: 'away' } } },
    { status: 507, body: { error: { code: 'evidence_store_full', message: 'full' } } },
    { status: 429, body: {}, headers: { 'retry-after': '60' } },
    { status: 401, body: {} },
    { status: 404, body: '<html>a proxy</html>' },
    { status: 409, body: { error: { code: 'something_else', message: 'no' } } },
    { status: 0, cut: true },
  ];
  const refused = {
    status: 404,
    body: { error: { code: 'incident_of_another_sensor', message: 'not yours' } },
  };
  scene.answer((index) => keeps[index] ?? refused);
  let why: string | null = null;
  await until(scene, () => {
    if (monitor.requests.length < keeps.length) assert.equal(filesIn(folder).length, 1);
    if (monitor.requests.length === 2) why = sensor.evidence.status().why;
    return filesIn(folder).length === 0;
  });
  assert.equal(monitor.requests.length, keeps.length + 1);
  assert.ok(why, 'the status says why a file waits');
  assert.ok(lines.some((line) => line.includes('refused a capture file') && line.includes('not yours')));
  await sensor.stop();
});

test('a file whose incident the monitor does not know for a day is dropped', async (t) => {
  let attempts = 0;
  const client: MonitorClient = {
    url: '',
    async request() {
      attempts += 1;
      const json = { error: { code: 'incident_unknown', message: 'no' } };
      return { status: 409, headers: new Headers(), json };
    },
  };
  const lines: string[] = [];
  const write = (line: string) => lines.push(line);
  const reporter = createReporter({ program: 'sensor', format: 'text', level: 'info', write });
  const stateDirectory = temporaryFolder(t);
  const files = createEvidenceFiles({ stateDirectory, reporter, freeBytes: async () => 1e12 });
  files.open();
  const id = '00000000-0000-4000-8000-000000000000';
  await files.keep(id, Buffer.from('a file'));
  const clock = createTestClock(0);
  const sender = new Sender({ ...{ files, client, clock, reporter }, spool: { oldest: () => null } });
  sender.announce(true);
  sender.follow(() => false);
  sender.start();
  while (files.has(id)) {
    // The loop waits: what it sent was answered.
    if (clock.waiting() === 1) await clock.advance(60_000);
    else await nextTurn();
    assert.ok(clock.nowMs() < 2 * 86_400_000);
  }
  assert.ok(clock.nowMs() >= 86_400_000);
  assert.ok(attempts < 200, `${attempts} attempts`);
  assert.ok(lines.some((line) => line.includes('does not know its incident')));
  await sender.stop();
});

for (const [what, plan] of [
  ['an older monitor', detectionPlan(thresholds)],
  ['a monitor that wants none', detectionPlan({ ...thresholds, takes_evidence: false })],
] as const)
  test(`for ${what} nothing is recorded, kept or sent`, async (t) => {
    const scene = await stage(t);
    const { sensor, monitor, folder } = scene;
    sensor.follow(plan);
    await sensor.play([flood({}, 3.5, 6), quiet(90)], 90);
    const told = deliver(scene);
    assert.ok(told.length > 1 && told.every(({ hasEvidence }) => !hasEvidence));
    await sensor.play([quiet(100)], 100);
    assert.deepEqual([filesIn(folder), monitor.requests], [[], []]);
    await sensor.stop();
  });

test('a drill and traffic that need not be an attack have no capture file', async (t) => {
  const scene = await stage(t);
  const { sensor, folder } = scene;
  const drill = {
    ...{
      id: 'd',
      target: '192.0.2.7',
      direction: 'inbound',
      class: 'syn_flood',
      pps: 50_000,
      bps: 3e7,
      seconds: 20,
    },
    started_at: new Date((startSecond + 5) * 1000).toISOString(),
  };
  sensor.follow(detectionPlan({ ...thresholds, takes_evidence: true, drills: [drill] }));
  await sensor.play([quiet(20)], 20);
  const told = deliver(scene);
  assert.ok(told.length > 0 && told.every((one) => one.drill && !one.hasEvidence));
  for (const [id, severity] of [
    ['00000000-0000-4000-8000-000000000001', 'attack'],
    ['00000000-0000-4000-8000-000000000002', 'info'],
  ] as const) {
    const target = { kind: 'host', value: '192.0.2.7' } as const;
    const one = { id, severity, drill: false, target, direction: 'inbound' } as Incident;
    sensor.evidence.note([{ capture: 'eth0', open: [one] }]);
    assert.equal(sensor.evidence.has(id), severity === 'attack');
  }
  assert.deepEqual(filesIn(folder), []);
  await sensor.stop();
});

test('a sensor that starts again keeps the file while the attack goes on, and sends it when it is over', async (t) => {
  const scene = await stage(t);
  scene.sensor.follow(takes);
  await scene.sensor.play([flood({ ratio: 2 }, 3.5, 20)], 8);
  const [first] = deliver(scene);
  // The recording is not full: what there is is kept.
  await scene.sensor.stop();
  assert.deepEqual(filesIn(scene.folder), [`${first!.id}.pcap.zst`]);
  const kept = readFileSync(join(scene.folder, 'evidence', `${first!.id}.pcap.zst`));
  assert.ok(unpack(kept).packets.length > 50);
  writeFileSync(join(scene.folder, 'evidence', `${first!.id}.pcap.zst.new`), 'half of a file');
  const setting = { monitor: scene.monitor.url, from: 10, uptimeFrom: 10_000 };
  const again = { ...scene, sensor: await createDetectingSensor(scene.folder, setting) };
  again.sensor.follow(takes);
  await again.sensor.play([flood({ ratio: 2 }, 10, 20)], 20);
  deliver(again);
  assert.equal(scene.monitor.requests.length, 0, 'it goes on');
  assert.deepEqual(filesIn(scene.folder), [`${first!.id}.pcap.zst`]);
  await again.sensor.play([quiet(90)], 90);
  deliver(again);
  await until(again, () => filesIn(scene.folder).length === 0);
  assert.deepEqual(
    scene.monitor.requests.map(({ body }) => body.equals(kept)),
    [true],
  );
  await again.sensor.stop();
});

test('a sensor that is killed while it records begins again; one that is killed later keeps its file', async (t) => {
  const scene = await stage(t);
  scene.sensor.follow(takes);
  await scene.sensor.play([flood({ ratio: 2 }, 3.5, 60)], 8);
  assert.ok(scene.sensor.detection.active().length === 1 && filesIn(scene.folder).length === 0);
  scene.sensor.spool.close();
  const setting = (from: number) => ({ monitor: scene.monitor.url, from, uptimeFrom: from * 1000 });
  const second = { ...scene, sensor: await createDetectingSensor(scene.folder, setting(10)) };
  second.sensor.follow(takes);
  await second.sensor.play([flood({}, 10, 60)], 16);
  await until(second, () => filesIn(scene.folder).some((one) => one.endsWith('.zst')));
  const [name] = filesIn(scene.folder);
  const kept = readFileSync(join(scene.folder, 'evidence', name!));
  assert.equal(unpack(kept).packets.length, 2000);
  second.sensor.spool.close();
  const third = { ...scene, sensor: await createDetectingSensor(scene.folder, setting(30)) };
  third.sensor.follow(takes);
  await third.sensor.play([quiet(110)], 110);
  deliver(third);
  await until(third, () => filesIn(scene.folder).length === 0);
  assert.deepEqual(
    scene.monitor.requests.map(({ path, body }) => [path, body.equals(kept)]),
    [[`/agent/v1/evidence/${name!.replace('.pcap.zst', '')}`, true]],
  );
  await third.sensor.stop();
});

test('a disk without room keeps no file and says so; the incident goes on', async (t) => {
  const scene = await stage(t, { freeBytes: 64 * 1024 * 1024 });
  const { sensor, folder, lines } = scene;
  sensor.follow(takes);
  await sensor.play([flood({}, 3.5, 8), quiet(90)], 10);
  await until(scene, () => lines.some((line) => line.includes('can not be kept')));
  assert.ok(lines.some((line) => line.includes('less than 64 MiB of the disk are free')));
  await calm(scene, 80);
  const told = deliver(scene);
  assert.deepEqual([told.at(-1)!.state, told.at(-1)!.hasEvidence], ['recovered', false]);
  assert.deepEqual(filesIn(folder), []);
  await sensor.stop();
});

test('files that wait are bounded in number and bytes: the oldest make room, counted and logged', async (t) => {
  for (const [count, bytes, left] of [
    [filesMax, 1000, filesMax],
    [4, filesBytesMax / 4, 4],
  ] as const) {
    const scene = await stage(t);
    scene.answer(() => ({ status: 503 }));
    const folder = join(scene.folder, 'evidence');
    const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
    await scene.sensor.stop();
    for (let n = 0; n < count; n += 1) {
      writeFileSync(join(folder, `${idOf(n)}.pcap.zst`), Buffer.alloc(bytes));
      utimesSync(join(folder, `${idOf(n)}.pcap.zst`), 1000 + n, 1000 + n);
    }
    const lines: string[] = [];
    const write = (line: string) => lines.push(line);
    const reporter = createReporter({ program: 'sensor', format: 'text', level: 'info', write });
    const sensor = await createDetectingSensor(scene.folder, { monitor: scene.monitor.url, reporter });
    sensor.follow(takes);
    await sensor.play([flood({}, 3.5, 8)], 8);
    await until({ ...scene, sensor }, () => lines.some((line) => line.includes('were recorded')));
    const names = filesIn(scene.folder);
    assert.equal(names.length, left);
    assert.ok(!names.includes(`${idOf(0)}.pcap.zst`) && names.includes(`${idOf(1)}.pcap.zst`));
    assert.ok(
      lines.some((line) => line.includes('was dropped: too many wait') && line.includes('dropped=1')),
    );
    await sensor.stop();
  }
});

test('what lies in the folder and is no capture file is removed', async (t) => {
  const scene = await stage(t);
  await scene.sensor.stop();
  const folder = join(scene.folder, 'evidence');
  writeFileSync(join(folder, 'x.new'), 'x');
  writeFileSync(
    join(folder, `${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}.pcap.zst`),
    zstdCompressSync('x'),
  );
  const again = await createDetectingSensor(scene.folder, { monitor: scene.monitor.url });
  assert.equal(filesIn(scene.folder).length, 1);
  await again.stop();
});
