/**
 * The port scans of `sensor run` in this network namespace, without captures. Says what runs every second:
 * `{"atMs", "why", "paused", "step"}`; it ends with its standard input.
 *
 * usage: scanning-sensor.ts MONITOR-URL STATE-DIRECTORY CPU-PERCENT CPU-WAIT-PERCENT (from where scans pause)
 */
import { systemClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { createHostScans } from '#sensor/scanner/index.ts';

const [url, stateDirectory, cpuPercent, cpuWaitPercent] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
];
const say = (what: unknown) => process.stdout.write(`${JSON.stringify(what)}\n`);
const service = createHostScans({
  client: createMonitorClient(url),
  ...{ stateDirectory, clock: systemClock },
  reporter: createReporter({
    program: 'scanning-sensor',
    level: 'warn',
    write: (line) => process.stderr.write(`${line}\n`),
  }),
  pressure: { cpuPercent: Number(cpuPercent), cpuWaitPercent: Number(cpuWaitPercent) },
  onOwnTraffic() {},
});
await service.start();
const timer = setInterval(() => {
  const { why, scans } = service.status();
  const paused = scans.find((one) => one.pausedFor !== null)?.pausedFor ?? null;
  say({ atMs: Date.now(), why, paused, step: scans[0]?.step ?? null });
}, 1000);
process.stdin
  .on('end', async () => {
    clearInterval(timer);
    await service.stop();
    process.exit();
  })
  .resume();
