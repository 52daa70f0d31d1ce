/**
 * Applies uploads in a process that crashes after so many statements, lets another process finish, and tells what the site
 * has then. The whole monitor runs, with all its consumers, on a chosen engine of facts.
 */
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import type { FactStore } from '#monitor/facts/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createCrashingDatabase } from '#service-kit/testing/crash-injection.ts';
import type { TestDatabase } from '#service-kit/testing/index.ts';
import { compose, type Monitor } from '../../composition.ts';
import { readConfig } from '../../config.ts';

/** The facts as a process opens them: PostgreSQL by the process's own connections, or another engine. */
export type OpenFacts = (db: () => Queryable) => FactStore;

const address = '203.0.113.10';
const neighbour = '203.0.113.11';
/** Five minutes apart: what is seen again sooner need not move the time at which a device was last seen. */
const at = (index: number) => testMinute + index * 300;

export interface Applied {
  /** What the site has, one line for each row. */
  outcome: string[];
  /** The crashed process had ended the uploads. */
  wasEnded: boolean;
}

/** A process that does not crash, for any number of sites. */
export type WholeProcess = ReturnType<typeof startWholeProcess>;

export function startWholeProcess(database: TestDatabase, openFacts: OpenFacts) {
  const { monitor, database: own } = startProcess(database, openFacts, Number.POSITIVE_INFINITY);
  return { monitor, openFacts, [Symbol.asyncDispose]: () => own[Symbol.asyncDispose]() };
}

/** Applies the same uploads of a new sensor at a new site. */
export async function applyWithCrash(
  database: TestDatabase,
  { monitor, openFacts }: WholeProcess,
  statements: number,
): Promise<Applied> {
  const site = await monitor.sites.create(systemActor, `Site ${statements}`);
  const probe = await monitor.probes.add(systemActor, site.id, {
    ...{ name: 'Gateway', kind: 'icmp', target: '192.0.2.1', port: null },
    ...{ intervalSeconds: 10, timeoutMs: 1000, isEnabled: true },
  });
  const { token } = await monitor.sensors.createToken(systemActor, site.id);
  const names = { host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' };
  const made = await monitor.sensors.enrol({ token, ...names });
  const sensor = (await monitor.sensors.authenticate(made!.credential))!;
  for (const upload of makeUploads(probe))
    await monitor.inbox.receive(sensor, compressUpload(encodeUpload(upload)), 'zstd');
  {
    const crashing = startProcess(database, openFacts, statements);
    await using _crashing = crashing.database;
    await crashing.monitor.inbox.drain().catch((error: unknown) => {
      if (!crashing.database.hasCrashed) throw error;
    });
  }
  const ended = await query(
    database,
    `select 1 from inbox_uploads where sensor_id = ${sensor.id} and state = 'applied'`,
  );
  await query(database, 'update leases set expires_at = svc_now()');
  await monitor.inbox.drain();
  return { outcome: await tell(database, monitor, site.id), wasEnded: ended.length > 0 };
}

function startProcess(database: TestDatabase, openFacts: OpenFacts, statements: number) {
  const own = createCrashingDatabase(database.url, { statements, from: /insert into inbox_attempts/ });
  const { db, pool } = own;
  const monitor = compose(readConfig({}), {
    database: { name: 'database', db, pool, reader: db, start: async () => {}, stop: async () => {} },
    reporter: silentReporter,
    facts: openFacts(() => db),
    inbox: { retrySeconds: 0 },
  });
  return { monitor, database: own };
}

/** Of every kind of record, with gaps that later minutes contradict, and two owners of one address. */
function makeUploads(probe: number): TelemetryUpload[] {
  const spool = createSpool();
  const minute = (index: number, capture: string, mac: string) =>
    captureMinute({
      ...{ minute: at(index), capture, role: capture === 'br0' ? ('bridge' as const) : ('uplink' as const) },
      hosts: [host(address, 1000 + index, 100, `br0|02:00:00:00:00:${mac}`), host(neighbour, 5, 6)],
      usage: [usageRow({ client: address, clientLastSentMs: at(index) * 1000, serverLastSentMs: 0 })],
    });
  const down = { fromMinute: at(1), toMinute: at(4), capture: '', reason: 'sensor_down' as const };
  const result = { probe, minute: at(0), firstSentMs: 0, sent: 6, lost: 1, failure: 'timeout' as const };
  return [
    spool.upload([minute(0, 'eth0', '01'), minute(0, 'br0', '01')], [down]),
    {
      ...spool.upload([minute(2, 'eth0', '01'), minute(2, 'br0', '02')]),
      probes: [{ ...result, rtt: { minUs: 1, medianUs: 2, maxUs: 3 } }],
      inventory: {
        observedAtMs: at(2) * 1000,
        ...{ interfaces: [], neighbours: [], interfacesLeftOut: 0, neighboursLeftOut: 0 },
      },
    },
    spool.upload([minute(3, 'br0', '02'), { ...minute(0, 'eth0', '01'), observedMs: 1000 }]),
    spool.upload(
      [captureMinute({ minute: at(4), hosts: [{ ...host(neighbour, 2 ** 50, 0), packets: 1 }] })],
      [{ ...down, fromMinute: at(5), toMinute: at(5), reason: 'refused' }],
    ),
  ];
}

const tables: Readonly<Record<string, string>> = {
  device: 'select segment, mac, first_seen_at, last_seen_at from devices where site_id = $1',
  binding: 'select mac, address, first_seen_at, last_seen_at, ended_at from ip_bindings where site_id = $1',
  conflict: 'select address, macs, resolved_at is null from ip_conflicts where site_id = $1',
  event: "select kind, details - 'id' from events where site_id = $1",
  'set aside': 'select address, minute, capture from set_aside_hosts where site_id = $1',
  'set aside count':
    'select minute_rows from sensor_set_asides a join sensors s on s.id = a.sensor_id where s.site_id = $1',
  'probe minute': `select minute, m.sent, m.lost, rtt_median_sum_us, rtt_medians
    from probe_minutes m join probes p on p.id = m.probe_id where p.site_id = $1`,
  inventory:
    'select observed_at from host_inventories i join sensors s on s.id = i.sensor_id where s.site_id = $1',
  upload: 'select sequence, state from inbox_uploads where site_id = $1',
};

/** Everything that the site has, without the ids that differ between sites. */
async function tell(database: TestDatabase, { facts }: Monitor, siteId: number): Promise<string[]> {
  const lines: string[] = [];
  const add = (name: string, rows: readonly object[]) => {
    for (const row of rows) lines.push(`${name} ${JSON.stringify(row, inOrder)}`);
  };
  const range = { siteId, fromMinute: at(-10), toMinute: at(20) };
  await facts.rollUp('none');
  add('gap', await facts.listGaps(range, 100));
  add('capture', await facts.listCaptures(siteId, at(-10)));
  add('step', await facts.sumSite({ ...range, stepSeconds: 60 }));
  for (const one of [address, neighbour]) {
    add(one, (await facts.readAddress({ ...range, address: one })).sightings);
    add(`rows of ${one}`, await facts.explainAddress({ ...range, address: one }));
  }
  add('pair', await facts.listPairs({ ...range, direction: null }, 100));
  add('ranking', [await facts.rankApplications({ ...range, direction: null, limit: 10 })]);
  for (const [name, text] of Object.entries(tables)) add(name, await query(database, text, [siteId]));
  return lines.sort();
}

/** Fields by name and without ids, which engines and sites have of their own. */
function inOrder(_field: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  const fields = Object.entries(value).filter(([name]) => name !== 'captureId' && name !== 'sensorId');
  return Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function query(database: TestDatabase, text: string, values: unknown[] = []): Promise<object[]> {
  return (await database.pool.query<object>(text, values)).rows;
}
