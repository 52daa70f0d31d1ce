/**
 * Runs inside a lab's hypervisor: captures its uplink and its bridge by the plans that come as lines of its input, says `listening`
 * and, for each address, when it is seen spoofed first, `spoofed ADDRESS`. When its input ends it prints the minutes as JSON.
 *
 * usage: spoofing-sensor.ts UPLINK BRIDGE
 */
import { createInterface } from 'node:readline';
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { createCollection, createUnkeptMinutes } from '#sensor/collection/index.ts';
import { parsePlan } from '#sensor/plan/index.ts';

const [uplink, bridge] = process.argv.slice(2) as [string, string];
const minutes: TelemetryMinute[] = [];
const spoofed = new Set<string>();
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
  onWindow(window) {
    for (const address of window.spoofed) {
      if (!spoofed.has(address)) process.stdout.write(`spoofed ${address}\n`);
      spoofed.add(address);
    }
  },
  onCommitted: () => {},
  spool: createUnkeptMinutes((added) => minutes.push(...added)),
});
await collection.start();
for await (const line of createInterface({ input: process.stdin }))
  collection.follow(parsePlan(JSON.parse(line))!);
await collection.stop();
process.stdout.write(JSON.stringify(minutes));
