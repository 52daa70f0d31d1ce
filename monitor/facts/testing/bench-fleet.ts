/** Simulated sensors of 50 hosts each: what they are enrolled as, and the minutes that they send. */
import { randomUUID } from 'node:crypto';
import type { TelemetryMinute, TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import type { BenchDatabase } from './bench-monitor.ts';
import type { Random } from './random-uploads.ts';

export const hostsOfUpload = 50;
export const usageOfUpload = 200;
export const sensorVersion = '0.2.0';
/** Tables that have a row for each host, application and connection of an upload. */
export const factTables = ['host_minutes', 'application_facts', 'endpoint_pairs'] as const;
/** Requests that are under way at the same time. */
const connections = 24;

export interface FleetSensor {
  credential: string;
  index: number;
  siteId: number;
  spoolId: string;
  sequence: number;
  /** Of its hosts' addresses: with 10 they are private, and mean something in their segment only. */
  firstOctet: number;
}

export interface FleetUpload {
  credential: string;
  body: Uint8Array;
}

/** Enrols sensors, the same number on each of the sites; their rows are written at once, as enrolments one by one would leave them. */
export async function enrolFleet(
  { monitor, database }: BenchDatabase,
  { sensors, sites, firstOctet }: { sensors: number; sites: number; firstOctet: number },
): Promise<FleetSensor[]> {
  const siteIds: number[] = [];
  for (let i = 0; i < sites; i += 1)
    siteIds.push((await monitor.sites.create(systemActor, `Site ${i + 1}`)).id);
  const made = Array.from({ length: sensors }, (_, index) => ({
    ...{ index, siteId: siteIds[Math.floor((index * sites) / sensors)]!, node: nodeOf(index) },
    credential: mintCredential('svcsen'),
  }));
  await database.pool.query(
    `with made as (
      insert into sensors (site_id, host_name, node)
      select site_id, node, node from unnest($1::bigint[], $2::text[]) as m(site_id, node) returning id, node)
    insert into sensor_credentials (id, sensor_id, digest, first_used_at)
    select c.id, made.id, c.digest, svc_now() from unnest($2::text[], $3::text[], $4::bytea[]) as c(node, id, digest) join made using (node)`,
    [
      made.map(({ siteId }) => siteId),
      made.map(({ node }) => node),
      made.map(({ credential }) => credential.id),
      made.map(({ credential }) => credential.digest),
    ],
  );
  await database.pool.query('analyze');
  return made.map(({ index, siteId, credential }) => ({
    ...{ credential: credential.token, index, siteId, firstOctet },
    ...{ spoolId: randomUUID(), sequence: 0 },
  }));
}

export const nodeOf = (index: number) => `node-${index + 1}`;

/** One upload of every sensor for this minute. */
export function makeMinute(fleet: readonly FleetSensor[], random: Random, minute: number): FleetUpload[] {
  return fleet.map((sensor) => {
    sensor.sequence += 1;
    const upload = {
      spoolId: sensor.spoolId,
      sequence: sensor.sequence,
      sensorVersion,
      minutes: [makeCaptureMinute(sensor, random, minute)],
      gaps: [],
    };
    return { credential: sensor.credential, body: compressUpload(encodeUpload(upload)) };
  });
}

/** Address of a sensor's host, from 0. */
export const addressOf = ({ firstOctet, index }: FleetSensor, host: number) =>
  `${firstOctet}.${index >> 8}.${index & 255}.${host + 1}`;

function makeCaptureMinute(sensor: FleetSensor, random: Random, minute: number): TelemetryMinute {
  const { index } = sensor;
  const hosts = Array.from({ length: hostsOfUpload }, (_, i) => ({
    address: addressOf(sensor, i),
    isLocal: true,
    rxBytes: random(1_000_000),
    txBytes: random(1_000_000),
    packets: random(5000),
    deviceKey: `br0|02:00:${hex(index >> 8)}:${hex(index)}:00:${hex(i)}`,
  }));
  const usage = Array.from({ length: usageOfUpload }, (_, i): TelemetryUsageRow => {
    const name = random(1500);
    return {
      client: addressOf(sensor, i % hostsOfUpload),
      server: `198.${18 + (name >> 12)}.${(name >> 4) & 255}.${(name & 15) * 8 + random(4)}`,
      protocol: 6,
      serverPort: 443,
      direction: 'outbound',
      name: `service-${name}.example`,
      evidence: 'tls_sni',
      clientBytes: random(100_000),
      serverBytes: random(1_000_000),
      packets: 20 + random(900),
      clientLastSentMs: minute * 1000 + random(60_000),
      serverLastSentMs: minute * 1000 + random(60_000),
    };
  });
  const packets = 100_000 + random(50_000);
  const totals = { packets, ipPackets: packets, ipBytes: packets * 700, nonIpPackets: 0, parserDropped: 0 };
  return {
    minute,
    capture: 'eth0',
    role: 'uplink',
    observedMs: 60_000,
    totals: { ...totals, kernelDropped: 0, detailTruncated: 0 },
    hosts,
    usage,
  };
}

const hex = (value: number) => (value & 255).toString(16).padStart(2, '0');

/** Does this for each of the items, so many at the same time, in their order. */
export async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) await work(items[i]!);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

export function sendAll(
  server: { post(credential: string, body: Uint8Array): Promise<void> },
  uploads: readonly FleetUpload[],
): Promise<void> {
  return inParallel(uploads, connections, ({ credential, body }) => server.post(credential, body));
}

export async function countPending({ database }: BenchDatabase): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    "select count(*)::int as n from inbox_uploads where state = 'pending'",
  );
  return rows[0]!.n;
}

export async function untilApplied(bench: BenchDatabase): Promise<void> {
  while ((await countPending(bench)) > 0) await new Promise((wake) => setTimeout(wake, 50));
}

export async function countRows({ database }: BenchDatabase): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    `select ${factTables.map((table) => `(select count(*) from ${table})`).join(' + ')} as n`,
  );
  return Number(rows[0]!.n);
}
