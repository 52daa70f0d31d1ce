/**
 * The capture and the detection of `sensor run` on an interface of this network namespace, with a spool on disk and no monitor.
 * Says `listening`, and each attack when it lies in the spool, and again when its class is another one: `{"target", "atMs", "class"}`.
 *
 * usage: live-detector.ts INTERFACE DIRECTORY PLAN-AS-JSON
 */
import { systemClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { createCollection } from '#sensor/collection/index.ts';
import { Detection } from '#sensor/detection/index.ts';
import { createHostTime } from '#sensor/host-time/index.ts';
import { parsePlan } from '#sensor/plan/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';

const [interfaceName, directory, planText] = process.argv.slice(2) as [string, string, string];
const plan = parsePlan(JSON.parse(planText))!;
const say = (what: unknown) => process.stdout.write(`${JSON.stringify(what)}\n`);
const clock = systemClock;
const hostTime = createHostTime(clock);
const reporter = createReporter({
  program: 'live-detector',
  level: 'info',
  write(line) {
    if (line.includes('capture listens')) say('listening');
  },
});
const spool = createSpool({
  directory,
  bytesMax: 256 << 20,
  sensorVersion: '0.1.0',
  kinds: recordKinds,
  clock,
  reporter,
});
spool.open();
const told = new Map<string, string>();
const detection = new Detection({
  captures: [interfaceName],
  uplinks: [{ name: interfaceName, linkBps: () => null }],
  stateDirectory: directory,
  spool,
  clock,
  hostTime,
  reporter,
  onCommitted() {
    for (const one of detection.active()) {
      if (one.severity !== 'attack' || told.get(one.target) === one.class) continue;
      told.set(one.target, one.class);
      say({ target: one.target, class: one.class, atMs: clock.nowMs() });
    }
  },
});
const collection = createCollection({
  detection,
  captures: [
    {
      name: interfaceName,
      role: 'uplink',
      members: 1,
      source: { kind: 'live', interfaceName, ringMiB: 32, method: 'auto' },
    },
  ],
  spool,
  reporter,
  clock,
  hostTime,
  records: [detection.epochs],
  onCommitted() {},
});
await detection.start();
await collection.start();
collection.follow(plan);
detection.follow(plan);
