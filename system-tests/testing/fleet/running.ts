/** A fleet while it is measured. */
import type { FleetSensor } from '#monitor/facts/testing/bench-fleet.ts';
import type { BenchDatabase, BenchServer } from '#monitor/facts/testing/bench-monitor.ts';
import type { HeldWork } from './hold-work.ts';
import { measure, type Used } from './meter.ts';
import type { PartCost } from './report.ts';
import type { SensorClient } from './sensor-client.ts';
import type { StatementLog } from './statement-log.ts';

/** A fleet of one size while it is measured. */
export interface Running {
  bench: BenchDatabase;
  server: BenchServer;
  held: HeldWork;
  client: SensorClient;
  fleet: FleetSensor[];
  sample: FleetSensor[];
  /** Processor time of a second without requests. */
  idle: { serve: number; postgres: number };
  statements: StatementLog | null;
  report: (line: string) => void;
}

/** Processor time of a part, for a sensor and minute. */
export async function measurePart(
  running: Running,
  part: string,
  sensorMinutes: number,
  work: () => Promise<void>,
): Promise<PartCost> {
  await running.statements?.begin();
  const used = await measure(pidsOf(running), running.idle, work);
  await running.statements?.show(part);
  return costOf(part, used, sensorMinutes);
}

/** Bytes of a sensor and minute on the wire, both ways, while this was done. */
export async function countWire(
  { client, report }: Running,
  part: string,
  sensorMinutes: number,
  work: () => Promise<PartCost>,
): Promise<PartCost> {
  const before = client.bytes();
  const cost = await work();
  const after = client.bytes();
  const kib = (bytes: number) => `${(bytes / sensorMinutes / 1024).toFixed(1)} KiB`;
  report(
    `on the wire, a sensor and minute: ${part} ${kib(after.sent - before.sent)}, answers ${kib(after.received - before.received)}`,
  );
  return cost;
}

export const costOf = (part: string, { serve, postgres }: Used, sensorMinutes: number): PartCost => ({
  part,
  serveMs: (serve * 1000) / sensorMinutes,
  postgresMs: (postgres * 1000) / sensorMinutes,
});

export const pidsOf = ({ server, bench }: Running) => ({ serve: server.pid, postgres: bench.pid() });
