/**
 * A site of 1,000 servers with a day of traffic: as many connections as facts of applications, by COPY into the tables as uploads
 * would have left them. Rows are drawn by the minute and the server alone, so a world that is kept goes on where it ended.
 */
import type { BenchDatabase } from '#monitor/facts/testing/bench-monitor.ts';
import { seededBelow } from '#monitor/facts/testing/random-uploads.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { copyRows, RowWriter } from '#service-kit/postgres/index.ts';

export const servers = 1000;
const sensors = 20;
const customers = 100;
const names = 2000;
const namesOfEach = 60;
/** Addresses of one name, in a network of its own; a server talks to one of them. */
const addressesOfName = 8;
const daySeconds = 86_400;
/** Minutes of one COPY. */
const minutesAtOnce = 20;

const shared = ['site_id', 'minute', 'capture_id', 'vantage', 'direction'];
const hostColumns = [
  ...[
    'site_id',
    'minute',
    'capture_id',
    'address',
    'rx_bytes',
    'tx_bytes',
    'packets',
    'device_key',
    'segment',
  ],
];
const factColumns = [
  ...[...shared, 'local_address', 'name', 'protocol', 'server_port', 'evidence', 'is_attributed'],
  ...['inbound_bytes', 'outbound_bytes', 'packets', 'last_sent_at', 'segment'],
];
const pairColumns = [
  ...[...shared, 'client', 'server', 'name', 'protocol', 'server_port', 'evidence', 'is_attributed'],
  ...['client_bytes', 'server_bytes', 'packets', 'segment'],
];

export type BusySite = Awaited<ReturnType<typeof makeBusySite>>;

/** `facts`: of 24 hours. A database that has the site already keeps what it has. */
export async function makeBusySite(bench: BenchDatabase, facts: number) {
  const { pool } = bench.database;
  const known = await pool.query<{ id: number }>(`select id from sites where name = 'Busy'`);
  const siteId = known.rows[0]?.id ?? (await makeSite(bench));
  const captures = await pool.query<{ id: number }>(
    'select id from captures where site_id = $1 order by sensor_id',
    [siteId],
  );
  const captureIds = captures.rows.map((row) => row.id);
  return {
    siteId,
    /** Adds the minutes that have ended since the last call; the first one adds a day. */
    async fillUpToNow() {
      const end = Math.floor(Date.now() / 60_000) * 60;
      const { rows } = await pool.query<{ newest: number | null }>(
        'select extract(epoch from max(minute))::float8 as newest from capture_minutes where site_id = $1',
        [siteId],
      );
      const newest = rows[0]!.newest;
      const start = Math.max(end - daySeconds, newest === null ? 0 : newest + 60);
      for (let from = start; from < end; from += minutesAtOnce * 60) {
        const to = Math.min(end, from + minutesAtOnce * 60);
        await fillMinutes(bench, { siteId, captureIds, from, to, perMinute: facts / 1440 });
      }
    },
  };
}

async function makeSite({ monitor, database }: BenchDatabase): Promise<number> {
  const { pool } = database;
  const { id } = await monitor.sites.create(systemActor, 'Busy');
  await pool.query(`insert into site_clusters (site_id, cluster_id) values ($1, 7)`, [id]);
  await pool.query(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at, last_seen_at)
     select 7, n, 'hv-' || n % $2, 'web-' || n, 'running', svc_now(), svc_now() from generate_series(1, $1::int) n`,
    [servers, sensors],
  );
  await pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
     select n, n % $2, n, 7, '10.0.0.0'::inet + n, 'x', true from generate_series(1, $1::int) n`,
    [servers, customers],
  );
  await pool.query(
    `insert into sensors (site_id, host_name, node) select $1::bigint, 'hv-' || n, 'hv-' || n from generate_series(0, $2::int - 1) n`,
    [id, sensors],
  );
  await pool.query(
    `insert into captures (site_id, sensor_id, name, role) select site_id, id, 'eth0', 'uplink' from sensors where site_id = $1`,
    [id],
  );
  await pool.query(
    `insert into devices (site_id, segment, mac, first_seen_at, last_seen_at)
     select $1::bigint, 'br0', '02:00:00:00:' || lpad(to_hex(n / 256), 2, '0') || ':' || lpad(to_hex(n % 256), 2, '0'), svc_now(), svc_now()
     from generate_series(1, $2::int) n`,
    [id, servers],
  );
  await pool.query(
    `insert into application_names (site_id, name, first_seen_at, last_seen_at)
     select $1::bigint, 'service-' || n || '.example', svc_now(), svc_now() from generate_series(0, $2::int - 1) n`,
    [id, names],
  );
  return id;
}

interface Filling {
  siteId: number;
  captureIds: readonly number[];
  from: number;
  to: number;
  /** Facts of all servers. */
  perMinute: number;
}

async function fillMinutes({ database, monitor }: BenchDatabase, filling: Filling): Promise<void> {
  const { siteId, from, to } = filling;
  await monitor.facts.prepare([from, to - 60]);
  const { hosts, facts, pairs } = drawMinutes(filling);
  await database.db.transaction().execute(async (trx) => {
    await copyRows(trx, 'host_minutes', hostColumns, hosts.finish());
    await copyRows(trx, 'application_facts', factColumns, facts.finish());
    await copyRows(trx, 'endpoint_pairs', pairColumns, pairs.finish());
  });
  const minutes = `generate_series(to_timestamp($2::float8), to_timestamp($3::float8), interval '1 minute') m`;
  await database.pool.query(
    `insert into capture_minutes (site_id, minute, capture_id, vantage, observed_ms, packets, ip_packets, ip_bytes, non_ip_packets,
       parser_dropped, kernel_dropped, detail_truncated)
     select $1::bigint, m, c.id, 1, 60000, 1000, 1000, 100000, 0, 0, 0, 0 from captures c, ${minutes} where c.site_id = $1`,
    [siteId, from, to - 60],
  );
  await database.pool.query(
    `insert into site_minute_marks (site_id, minute) select $1::bigint, m from ${minutes}`,
    [siteId, from, to - 60],
  );
}

const localOf = (server: number) => `10.0.${server >> 8}.${server & 255}`;
const hex = (value: number) => value.toString(16).padStart(2, '0');
const deviceOf = (server: number) => `br0|02:00:00:00:${hex(server >> 8)}:${hex(server & 255)}`;

/** One name in ten is served by the server itself, by SSH; one in ten is asked over UDP. */
function drawMinutes({ siteId, captureIds, from, to, perMinute }: Filling) {
  const hosts = new RowWriter(4 << 20);
  const facts = new RowWriter(32 << 20);
  const pairs = new RowWriter(32 << 20);
  for (let minute = from; minute < to; minute += 60) {
    const random = seededBelow(minute / 60);
    const place = (to: typeof hosts, server: number) => {
      to.bigint(siteId);
      to.timestamp(minute * 1000);
      to.bigint(captureIds[server % captureIds.length]!);
    };
    let owed = 0;
    for (let server = 1; server <= servers; server += 1) {
      const local = localOf(server);
      hosts.row(hostColumns.length);
      place(hosts, server);
      hosts.inet(local);
      hosts.bigint(100_000 + random(900_000));
      hosts.bigint(10_000 + random(90_000));
      hosts.bigint(50 + random(1000));
      hosts.text(deviceOf(server));
      hosts.text('');
      owed += perMinute / servers;
      for (const name of drawNames(random, server, Math.floor(owed))) {
        owed -= 1;
        const isInbound = name % 10 === 9;
        const protocol = name % 10 === 8 ? 17 : 6;
        const port = isInbound ? 22 : name % 10 === 8 ? 53 : 443;
        const bytes = 1000 + random(60_000);
        const peer = `198.${18 + (name >> 8)}.${name & 255}.${server % addressesOfName}`;
        const [client, remote] = isInbound ? [peer, local] : [local, peer];
        const text = `service-${name}.example`;
        facts.row(factColumns.length);
        place(facts, server);
        facts.smallint(1);
        facts.smallint(isInbound ? 2 : 1);
        facts.inet(local);
        facts.text(text);
        facts.smallint(protocol);
        facts.integer(port);
        facts.smallint(5);
        facts.boolean(true);
        facts.bigint(bytes);
        facts.bigint(100);
        facts.bigint(10);
        facts.timestamp(minute * 1000);
        facts.text('');
        pairs.row(pairColumns.length);
        place(pairs, server);
        pairs.smallint(1);
        pairs.smallint(isInbound ? 2 : 1);
        pairs.inet(client);
        pairs.inet(remote);
        pairs.text(text);
        pairs.smallint(protocol);
        pairs.integer(port);
        pairs.smallint(5);
        pairs.boolean(true);
        pairs.bigint(isInbound ? bytes : 100);
        pairs.bigint(isInbound ? 100 : bytes);
        pairs.bigint(10);
        pairs.text('');
      }
    }
  }
  return { hosts, facts, pairs };
}

/** So many different names of a server's, the first ones more often. */
function* drawNames(random: (below: number) => number, server: number, count: number): Generator<number> {
  const drawn = new Set<number>();
  while (drawn.size < Math.min(count, namesOfEach)) {
    const n = Math.floor((namesOfEach * random(1024) ** 2) / 1024 ** 2);
    if (drawn.has(n)) continue;
    drawn.add(n);
    yield (server * 37 + n) % names;
  }
}
