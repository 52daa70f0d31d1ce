/**
 * Runs inside a lab's hypervisor: captures its uplink and its bridge by this plan, says `listening`, and when its input ends prints
 * the minutes as JSON.
 *
 * usage: spoofing-sensor.ts PLAN UPLINK BRIDGE
 */
import { once } from 'node:events';
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { createCollection, createUnkeptMinutes } from '#sensor/collection/index.ts';
import { parsePlan } from '#sensor/plan/index.ts';

const [plan, uplink, bridge] = process.argv.slice(2) as [string, string, string];
const minutes: TelemetryMinute[] = [];
let waiting = 2;
const collection = createCollection({
  captures: [uplink, bridge].map((name) => ({
    name,
    role: name === uplink ? 'uplink' : 'bridge',
    source: { kind: 'live', interfaceName: name, ringMiB: 32 },
  })),
  reporter: {
    ...silentReporter,
    info(phrase) {
      if (phrase === 'capture listens') waiting -= 1;
      if (waiting === 0 && phrase === 'capture listens') process.stdout.write('listening\n');
    },
  },
  onCommitted: () => {},
  spool: createUnkeptMinutes((added) => minutes.push(...added)),
});
await collection.start();
collection.follow(parsePlan(JSON.parse(plan))!);
await once(process.stdin.resume(), 'end');
await collection.stop();
process.stdout.write(JSON.stringify(minutes));
