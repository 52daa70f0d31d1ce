/** Facts as from a sensor's uploads, for tests. */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type {
  DroppedCounters,
  OwnScanCounters,
  TelemetryMinute,
  TelemetryUsageRow,
} from '#contracts/sensor-api/telemetry.ts';
import type { Monitor } from '#monitor/composition.ts';
import { openScope } from '#monitor/facts/index.ts';
import type { TestDatabase } from '#service-kit/testing/index.ts';

/** A world whose site gets facts. */
type World = Pick<Monitor, 'facts' | 'devices'> & { database: TestDatabase; siteId: number };

const readRunningMinute = () => Math.floor(Date.now() / 60_000);

/** Not read anew within a test, so that one that crosses the end of a minute uses the same minutes. */
let runningMinute = readRunningMinute();

/** To be called before a test: in a process of many files, minutes pass between the first of them and the last. */
export function renewRunningMinute(): void {
  runningMinute = readRunningMinute();
}

/** Start of the minute this many complete minutes before the present one, seconds since 1970. */
export function minutesAgo(count: number): number {
  return (runningMinute - count) * 60;
}

/** A sensor of the world's site. */
export async function addSensor(world: World, name = 'node-1'): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into sensors (site_id, host_name, node)
    values (${world.siteId}, ${name}, ${name}) returning id`.execute(world.database.db);
  return rows[0]!.id;
}

export interface MinuteInput {
  minute: number;
  address: string;
  rxBytes?: number;
  txBytes?: number;
  packets?: number;
  ownScan?: OwnScanCounters;
  dropped?: DroppedCounters;
  deviceKey?: string;
  capture?: string;
  role?: 'uplink' | 'bridge';
  observedMs?: number;
  parserDropped?: number;
  usage?: Partial<TelemetryUsageRow>[];
}

/** Stores minutes with all effects of an upload, each in one transaction. */
export async function addMinutes(
  world: World,
  sensorId: number,
  inputs: readonly MinuteInput[],
): Promise<void> {
  const minutes = inputs.map(toMinute);
  const starts = minutes.map((minute) => minute.minute);
  await world.facts.prepare(starts);
  await world.database.db.transaction().execute(async (trx) => {
    const origin = { siteId: world.siteId, sensorId };
    const token = { spoolId: randomUUID(), sequence: 1 };
    await world.facts.append([{ origin, token, minutes, gaps: [] }], openScope(trx));
    await world.devices.recordSightings(trx, [{ siteId: world.siteId, sensorId, minutes }]);
  });
}

function toMinute(input: MinuteInput): TelemetryMinute {
  const { rxBytes = 0, txBytes = 0, packets = 0, deviceKey = '', ownScan, dropped } = input;
  const part = { ...(ownScan && { ownScan }), ...(dropped && { dropped }) };
  return {
    minute: input.minute,
    capture: input.capture ?? 'uplink0',
    role: input.role ?? 'uplink',
    observedMs: input.observedMs ?? 60_000,
    totals: {
      packets,
      ipPackets: packets,
      ipBytes: rxBytes + txBytes,
      nonIpPackets: 0,
      parserDropped: input.parserDropped ?? 0,
      kernelDropped: 0,
      detailTruncated: 0,
    },
    hosts: [{ address: input.address, isLocal: true, rxBytes, txBytes, packets, deviceKey, ...part }],
    usage: (input.usage ?? []).map((row) => ({
      client: input.address,
      server: '198.51.100.9',
      protocol: 6,
      serverPort: 443,
      direction: 'outbound' as const,
      name: 'example.com',
      evidence: 'tls_sni' as const,
      clientBytes: 0,
      serverBytes: 0,
      packets: Math.max(1, Math.ceil(((row.clientBytes ?? 0) + (row.serverBytes ?? 0)) / 65_575)),
      clientLastSentMs: input.minute * 1000 + 1,
      serverLastSentMs: 0,
      ...row,
    })),
  };
}
