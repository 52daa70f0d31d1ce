/** Differences between what the monitor knows and what operations holds, as sentences. */
import type { Pair } from './pair.ts';

/** Buckets that are surely within the five minutes of a delivery that just ended. */
const liveMs = 240_000;

export async function compare(pair: Pair): Promise<string[]> {
  return [
    ...(await compareMinutes(pair)),
    ...(await compareLive(pair)),
    ...(await compareIncidents(pair)),
    ...(await compareScans(pair)),
  ];
}

function differences(
  what: string,
  expected: ReadonlyMap<string, string>,
  held: readonly (readonly [string, string])[],
) {
  const faults: string[] = [];
  const seen = new Set<string>();
  for (const [key, value] of held) {
    if (seen.has(key)) faults.push(`${what} ${key} is held twice`);
    seen.add(key);
    const known = expected.get(key);
    if (known === undefined) faults.push(`${what} ${key} is held, and the monitor does not have it`);
    else if (known !== value) faults.push(`${what} ${key}: held ${value}, known ${known}`);
  }
  for (const key of expected.keys()) if (!seen.has(key)) faults.push(`${what} ${key} is missing`);
  return faults;
}

async function compareMinutes({ monitor, operations, addresses }: Pair): Promise<string[]> {
  const now = Math.floor(Date.now() / 60_000) * 60;
  const expected = new Map<string, string>();
  for (const address of addresses) {
    const minutes = await monitor.traffic.readAddressMinutes(monitor.siteId, address, now - 5_400, now);
    for (const one of minutes)
      if (!one.isGap) expected.set(`${address} ${one.minute}`, `${one.rxBytes} ${one.txBytes}`);
  }
  const { rows } = await operations.database.pool.query<{ address: string; minute: Date; bytes: string }>(
    `select address, minute, inbound_bytes || ' ' || outbound_bytes as bytes
     from protect_series join protect_minutes using (allocation_id) where inbound_bytes is not null`,
  );
  return differences(
    'minute',
    expected,
    rows.map((row) => [`${row.address} ${row.minute.getTime() / 1000}`, row.bytes]),
  );
}

async function compareLive({ operations, windows }: Pair): Promise<string[]> {
  const since = Date.now() - liveMs;
  const expected = new Map(
    windows
      .filter((window) => window.startedAtMs >= since)
      .flatMap(({ startedAtMs, hosts }) =>
        hosts.map(({ address, rxBytes, txBytes }): [string, string] => [
          `${address} ${startedAtMs}`,
          `${rxBytes} ${txBytes}`,
        ]),
      ),
  );
  const { rows } = await operations.database.pool.query<{ key: string; in: number; out: number }>(
    `select address || ' ' || (extract(epoch from started_at) * 1000)::bigint as key,
       inbound_bps * 10 / 8 as in, outbound_bps * 10 / 8 as out
     from protect_live_series join protect_live_buckets using (allocation_id) where started_at >= $1`,
    [new Date(since)],
  );
  // A bucket that ended since the last tick is on its way.
  const newest = Math.max(0, ...rows.map(({ key }) => Number(key.split(' ')[1])));
  for (const key of expected.keys()) if (Number(key.split(' ')[1]) > newest) expected.delete(key);
  return differences(
    'bucket',
    expected,
    rows.map((row) => [row.key, `${Math.round(row.in)} ${Math.round(row.out)}`]),
  );
}

/** Of an incident: what a customer sees of it. */
const shown = (table: string) =>
  `concat_ws(' ', class, severity, direction, state, extract(epoch from started_at), extract(epoch from detected_at),
    extract(epoch from last_observed_at), extract(epoch from recovered_at), ${table})`;

async function compareIncidents({ monitor, operations }: Pair): Promise<string[]> {
  const known = await monitor.database.pool.query<{ id: string; text: string }>(
    `select id, ${shown("revision, measured #>> '{peak,pps}'")} as text from incidents
     where target_kind = 'host' and not is_withdrawn`,
  );
  const held = await operations.database.pool.query<{ id: string; text: string }>(
    `select incident_id as id, ${shown('revision, peak_pps')} as text from protect_incidents`,
  );
  return differences(
    'incident',
    new Map(known.rows.map(({ id, text }) => [id, text])),
    held.rows.map(({ id, text }) => [id, text]),
  );
}

/** Of a scan: what operations keeps of it. */
const scanText = (openPorts: string) =>
  `concat_ws(' ', coalesce(request_id::text, 'routine'), profile, state, extract(epoch from started_at),
    extract(epoch from finished_at), ${openPorts})`;

/** Scans that a newer one replaced before they were delivered may be missing; everything else is there, and as reported. */
async function compareScans({ monitor, operations }: Pair): Promise<string[]> {
  const known = await monitor.database.pool.query<{ id: string; text: string; isDelivered: boolean }>(
    `select scan_id as id, ${scanText('jsonb_array_length(services)')} as text, delivered_at is not null as "isDelivered"
     from scan_attempts where result_at is not null`,
  );
  const held = await operations.database.pool.query<{ id: string; text: string }>(
    `select scan_id as id, ${scanText('ports_open')} as text from port_scans`,
  );
  const seen = new Set(held.rows.map(({ id }) => id));
  const expected = known.rows.filter(({ id, isDelivered }) => isDelivered || seen.has(id));
  const clusters = (await monitor.sites.listClusters()).map(({ clusterId }) => clusterId);
  const { revision } = (await monitor.connection.open())!;
  const waiting = await monitor.scans.listDeliverable(clusters, revision);
  return [
    ...differences(
      'scan',
      new Map(expected.map(({ id, text }) => [id, text])),
      held.rows.map(({ id, text }) => [id, text]),
    ),
    ...waiting.map(({ scanId }) => `scan ${scanId} was not delivered`),
    ...(await comparePorts({ monitor, operations })),
    ...(await compareRequests({ monitor, operations })),
  ];
}

type Sides = Pick<Pair, 'monitor' | 'operations'>;

/** Every port that is open at the monitor is open at operations by the same scan, of each profile apart. */
async function comparePorts({ monitor, operations }: Sides): Promise<string[]> {
  const known = await monitor.database.pool.query<{ key: string; id: string }>(
    `select concat_ws(' ', host(address), profile, transport, port) as key, scan_id as id from scan_observations
     where closed_at is null`,
  );
  const held = await operations.database.pool.query<{ key: string; id: string }>(
    `select concat_ws(' ', s.address, e.profile, o.transport, o.port) as key, e.id
     from port_observations o join port_scan_series s using (allocation_id)
     cross join lateral (values ('common', o.common_scan_id, o.common_closed_at),
       ('full', o.full_scan_id, o.full_closed_at)) as e(profile, id, closed_at)
     where e.closed_at is null`,
  );
  const evidence = new Map(held.rows.map(({ key, id }) => [key, id]));
  return known.rows
    .filter(({ key, id }) => evidence.get(key) !== id)
    .map(({ key, id }) => `port ${key}: held ${evidence.get(key) ?? 'nothing'}, known ${id}`);
}

/** A request whose result was delivered has ended as its scan has. */
async function compareRequests({ monitor, operations }: Sides): Promise<string[]> {
  const known = await monitor.database.pool.query<{ id: string; state: string }>(
    'select request_id as id, state from scan_attempts where request_id is not null and delivered_at is not null',
  );
  const held = await operations.database.pool.query<{ id: string; state: string }>(
    'select id, state from scan_requests',
  );
  const states = new Map(held.rows.map(({ id, state }) => [id, state]));
  return known.rows
    .filter(({ id, state }) => states.get(id) !== state)
    .map(({ id, state }) => `request ${id} is ${states.get(id) ?? 'missing'}, and its scan ${state}`);
}
