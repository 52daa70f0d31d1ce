/** Costs of a fleet as lines. */
import type { DiskUse } from './meter.ts';

/** Processor milliseconds of a sensor and minute. */
export interface PartCost {
  part: string;
  serveMs: number;
  postgresMs: number;
}

const cores = 2;

/** `idle`: processor seconds of a second without requests. */
export function describeParts(
  parts: readonly PartCost[],
  sensors: number,
  idle: { serve: number; postgres: number },
  report: (line: string) => void,
): void {
  const line = (part: string, serve: number, postgres: number) =>
    report(
      `  ${part.padEnd(16)} ${serve.toFixed(2).padStart(8)} ms of serve ${postgres.toFixed(2).padStart(8)} ms of PostgreSQL`,
    );
  report('processor time of a sensor and minute:');
  for (const { part, serveMs, postgresMs } of parts) line(part, serveMs, postgresMs);
  const serve = parts.reduce((sum, one) => sum + one.serveMs, 0);
  const postgres = parts.reduce((sum, one) => sum + one.postgresMs, 0);
  line('together', serve, postgres);
  report(
    `without requests a minute takes ${(idle.serve * 60).toFixed(2)} s of serve and ${(idle.postgres * 60).toFixed(2)} s of PostgreSQL`,
  );
  const ofServe = (serve * sensors) / 1000 + idle.serve * 60;
  const ofPostgres = (postgres * sensors) / 1000 + idle.postgres * 60;
  report(
    `a minute of ${sensors} sensors takes ${ofServe.toFixed(1)} s of serve and ${ofPostgres.toFixed(1)} s of PostgreSQL: ${((ofServe + ofPostgres) / cores).toFixed(1)} s of 60 of a machine with ${cores} cores`,
  );
}

/** Bytes of a sensor and day, by what kind of rows they are and how long those are kept. */
export function describeDisk(
  before: readonly DiskUse[],
  after: readonly DiskUse[],
  sensorMinutes: number,
  report: (line: string) => void,
): void {
  const sums = new Map<string, number>();
  const ofDay = (bytes: number) => (bytes / sensorMinutes) * 1440;
  const tables = after.map((use, i) => ({ ...use, grown: use.bytes - before[i]!.bytes }));
  for (const { kind, keptFor, grown } of tables) {
    const key = `${kind} of ${keptFor}`;
    sums.set(key, (sums.get(key) ?? 0) + grown);
  }
  const mib = (bytes: number) => `${(ofDay(bytes) / 2 ** 20).toFixed(1)} MiB`;
  const largest = tables
    .toSorted((a, b) => b.grown - a.grown)
    .slice(0, 8)
    .map(({ table, grown }) => `${table} ${mib(grown)}`);
  report(
    `disk of a sensor and day: ${[...sums].map(([key, bytes]) => `${key} ${mib(bytes)}`).join(', ')}; ${largest.join(', ')}`,
  );
}

/** MiB. */
export const describeMemory = ({
  serve,
  servePeak,
  postgres,
}: {
  serve: number;
  servePeak: number;
  postgres: number;
}) => `serve ${serve.toFixed(0)} MiB (most ${servePeak.toFixed(0)}), PostgreSQL ${postgres.toFixed(0)} MiB`;
