/**
 * A monitor for tests, on its own database: the composition of the program, one site, one sensor, and uploads encoded
 * like a real sensor's.
 */
import { randomUUID } from 'node:crypto';
import { silentReporter } from '#common/reporter/index.ts';
import {
  compressUpload,
  encodeUpload,
  type TelemetryGap,
  type TelemetryHost,
  type TelemetryMinute,
  type TelemetryUpload,
  type TelemetryUsageRow,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { compose, type Monitor } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import type { Inbox, InboxDeps } from '#monitor/inbox/index.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { testWrapper } from '#service-kit/secrets/testing/test-secrets.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { planSections } from './plan-sections.ts';
import { type StillClock, stopDatabaseClock } from './still-clock.ts';

/** Changes to an inbox for a test. */
export interface InboxChange extends Partial<InboxDeps> {
  /** One additional consumer, after the others. */
  plusConsumer?: UploadConsumer;
}

export interface WorldChange extends InboxChange {
  /** The database's clock stands at this time (milliseconds since 1970); absent: it goes. */
  standsAtMs?: number;
}

/** A monitor with a site, whose sensor sends. */
export interface SiteWorld extends Omit<Monitor, 'database'> {
  database: TestDatabase;
  /** The clock of a world that stands still. */
  standing: StillClock | null;
  siteId: number;
  sensor: EnrolledSensor;
  /** Another inbox on the same database, like a second process. */
  anotherInbox(change?: InboxChange): Inbox;
  /** Enrols another sensor at the site. */
  enrol(hostName: string): Promise<EnrolledSensor & { credential: string }>;
  /** Passes an upload in, like the sensor API. */
  send(upload: TelemetryUpload, sensor?: EnrolledSensor): Promise<'accepted' | 'duplicate'>;
  /** Passes uploads in and applies them. */
  apply(...uploads: TelemetryUpload[]): Promise<void>;
  /** All facts, for comparison: one text per row, with ids of captures replaced by names. */
  dumpFacts(): Promise<string[]>;
  rows<T>(text: string, values?: unknown[]): Promise<T[]>;
}

export interface MonitorWorld extends AsyncDisposable, SiteWorld {
  /** The same monitor at another site, with a sensor of its own: a database costs more than most tests of one site. */
  atNewSite(): Promise<SiteWorld>;
}

/** A recent minute, so that every table has a partition for it. */
export const testMinute = Math.floor(Date.now() / 60_000) * 60 - 1800;

export async function createMonitorWorld({ standsAtMs, ...change }: WorldChange = {}): Promise<MonitorWorld> {
  const database = await createTestDatabase('monitor');
  const standing = standsAtMs === undefined ? null : await stopDatabaseClock(database, standsAtMs);
  const config = readConfig({ SVC_LOG_LEVEL: 'error', SVC_MAC_VENDOR_LOOKUP_URL: '' });
  const composed = ({ plusConsumer, ...inbox }: InboxChange = {}) =>
    compose(config, {
      database: { ...database, name: 'database', start: async () => {}, stop: async () => {} },
      reporter: silentReporter,
      keyWrapper: testWrapper,
      sections: planSections(['192.0.2.10']),
      inbox: { retrySeconds: 0, ...inbox },
      consumers: plusConsumer ? [plusConsumer] : [],
    });
  const monitor = composed(change);
  const { sites, sensors, inbox } = monitor;
  const rows = async <T>(text: string, values: unknown[] = []) =>
    (await database.pool.query(text, values)).rows as T[];
  const atSite = async (name: string): Promise<SiteWorld> => {
    const site = await sites.create(systemActor, name);
    const enrol = async (hostName: string) => {
      const { token } = await sensors.createToken(systemActor, site.id);
      const made = await sensors.enrol({
        token,
        host_name: hostName,
        node: hostName,
        sensor_version: '0.1.0',
      });
      const sensor = await sensors.authenticate(made!.credential);
      return { ...sensor!, credential: made!.credential };
    };
    const sensor = await enrol('node-1');
    const send: SiteWorld['send'] = async (upload, from = sensor) =>
      (await inbox.receive(from, compressUpload(encodeUpload(upload)), 'zstd')).receipt;
    return {
      ...monitor,
      database,
      standing,
      siteId: site.id,
      sensor,
      anotherInbox: (other) => composed(other).inbox,
      enrol,
      send,
      async apply(...uploads) {
        for (const upload of uploads) await send(upload);
        await inbox.drain();
      },
      dumpFacts: async () => (await rows<{ line: string }>(factsQuery)).map((row) => row.line),
      rows,
    };
  };
  let sitesMade = 1;
  return {
    ...(await atSite('Test site')),
    atNewSite() {
      sitesMade += 1;
      return atSite(`Test site ${sitesMade}`);
    },
    [Symbol.asyncDispose]: () => database.drop(),
  };
}

const factsQuery = `
  select line from (
    select concat_ws(' ', 'capture', c.sensor_id, c.name, m.*) as line, m.minute, 1 as kind
      from (select minute, capture_id as id, observed_ms, packets, ip_packets, ip_bytes, non_ip_packets, parser_dropped,
        kernel_dropped, detail_truncated from capture_minutes) m join captures c using (id)
    union all
    select concat_ws(' ', 'host', c.sensor_id, c.name, h.address, sum(h.rx_bytes), sum(h.tx_bytes),
        sum(h.packets), case when min(h.device_key) = max(h.device_key) then min(h.device_key) end, h.minute),
      h.minute, 2 from host_minutes h join captures c on c.id = h.capture_id
      group by c.sensor_id, c.name, h.address, h.minute
    union all
    select concat_ws(' ', 'application', c.sensor_id, c.name, f.direction, f.local_address, f.name, f.protocol,
        f.server_port, f.evidence, sum(f.inbound_bytes), sum(f.outbound_bytes), sum(f.packets), max(f.last_sent_at), f.minute),
      f.minute, 3
      from application_facts f join captures c on c.id = f.capture_id
      group by c.sensor_id, c.name, f.direction, f.local_address, f.name, f.protocol, f.server_port, f.evidence, f.minute
    union all
    select concat_ws(' ', 'pair', c.sensor_id, c.name, p.client, p.server, p.name, sum(p.client_bytes), sum(p.server_bytes), p.minute),
      p.minute, 4 from endpoint_pairs p join captures c on c.id = p.capture_id
      group by c.sensor_id, c.name, p.client, p.server, p.name, p.minute
    union all
    select concat_ws(' ', 'gap', sensor_id, capture, from_minute, to_minute, reason), from_minute, 5 from telemetry_gaps
    union all
    select concat_ws(' ', 'site', site_id, minute, rx_bytes, tx_bytes, packets, addresses), minute, 6 from site_minutes
  ) facts order by kind, minute, regexp_replace(line, '\\d{3,}', '', 'g'), line`;

/** Uploads of one spool, numbered. */
export function createSpool(): {
  id: string;
  upload(minutes: TelemetryMinute[], gaps?: TelemetryGap[]): TelemetryUpload;
} {
  const id = randomUUID();
  let sequence = 0;
  return {
    id,
    upload(minutes, gaps = []) {
      sequence += 1;
      return { spoolId: id, sequence, sensorVersion: '0.1.0', minutes, gaps };
    },
  };
}

/** Counters of a capture; complete and without loss by default. */
export function captureMinute(
  part: Partial<Omit<TelemetryMinute, 'totals'>> & { totals?: Partial<TelemetryMinute['totals']> } = {},
): TelemetryMinute {
  const { totals, ...rest } = part;
  const ipPackets = totals?.ipPackets ?? 100;
  const parserDropped = totals?.parserDropped ?? 0;
  return {
    minute: testMinute,
    capture: 'eth0',
    role: 'uplink',
    observedMs: 60_000,
    hosts: [],
    usage: [],
    ...rest,
    totals: {
      ipBytes: 10_000,
      nonIpPackets: 0,
      kernelDropped: 0,
      detailTruncated: 0,
      ...totals,
      ipPackets,
      parserDropped,
      packets: ipPackets + (totals?.nonIpPackets ?? 0) + parserDropped,
    },
  };
}

export function host(address: string, rxBytes: number, txBytes: number, deviceKey = ''): TelemetryHost {
  const packets = Math.max(10, packetsOf(rxBytes + txBytes));
  return { address, isLocal: true, rxBytes, txBytes, packets, deviceKey };
}

/** The minimum number of packets for this many bytes: a packet has at most 65,575. */
const packetsOf = (bytes: number) => Math.ceil(bytes / 65_575);

/** An outbound TLS connection to port 443 by default. */
export function usageRow(part: Partial<TelemetryUsageRow> = {}): TelemetryUsageRow {
  const { clientBytes = 100, serverBytes = 1000 } = part;
  return {
    client: '192.0.2.10',
    server: '198.51.100.7',
    protocol: 6,
    serverPort: 443,
    direction: 'outbound',
    name: 'example.net',
    evidence: 'tls_sni',
    clientBytes: 100,
    serverBytes: 1000,
    packets: Math.max(10, packetsOf(clientBytes + serverBytes)),
    clientLastSentMs: testMinute * 1000 + 5_000,
    serverLastSentMs: testMinute * 1000 + 6_000,
    ...part,
  };
}
