/** Differences between the scans and requests that the monitor knows and those that operations holds. */
import { differences } from './differences.ts';
import type { Pair } from './pair.ts';

type Sides = Pick<Pair, 'monitor' | 'operations'>;

/** Of a scan: what operations keeps of it. */
const scanText = (openPorts: string) =>
  `concat_ws(' ', coalesce(request_id::text, 'routine'), profile, state, extract(epoch from started_at),
    extract(epoch from finished_at), ${openPorts})`;

/** Scans that a newer one replaced before they were delivered may be missing; everything else is there, and as reported. */
export async function compareScans({ monitor, operations, finals, proxy }: Pair): Promise<string[]> {
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
    ...proxy.unconfirmed.map((id) => `request ${id}: its result was sent and it was not confirmed`),
    ...differences(
      'scan',
      new Map(expected.map(({ id, text }) => [id, text])),
      held.rows.map(({ id, text }) => [id, text]),
    ),
    ...waiting.map(({ scanId }) => `scan ${scanId} was not delivered`),
    ...(await comparePorts({ monitor, operations })),
    ...(await compareIdentifications({ monitor, operations })),
    ...(await compareRequests({ monitor, operations })),
    ...(await compareFinals({ operations, finals })),
  ];
}

/**
 * Every port that is open at the monitor is open at operations by the same scan, of each profile apart. Results of requests that
 * were not confirmed again are not there.
 */
async function comparePorts({ monitor, operations }: Sides): Promise<string[]> {
  const known = await monitor.database.pool.query<{ key: string; id: string }>(
    `select concat_ws(' ', host(address), profile, transport, port) as key, scan_id as id from scan_observations o
     where closed_at is null and not exists (select 1 from scan_attempts a where a.address = o.address
       and a.request_id is not null and a.result_at is not null and a.delivered_at is null)`,
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

/** Every port that is open at both is identified by the same scan. */
async function compareIdentifications({ monitor, operations }: Sides): Promise<string[]> {
  const known = await monitor.database.pool.query<{ key: string; id: string }>(
    `select distinct on (address, transport, port) concat_ws(' ', host(address), transport, port) as key, scan_id as id
     from scan_identifications i where not exists (select 1 from scan_attempts a where a.address = i.address
       and a.request_id is not null and a.result_at is not null and a.delivered_at is null)
     order by address, transport, port, identified_at desc`,
  );
  const held = await operations.database.pool.query<{ key: string; id: string | null }>(
    `select concat_ws(' ', s.address, o.transport, o.port) as key, o.identified_scan_id as id
     from port_observations o join port_scan_series s using (allocation_id) where o.closed_at is null`,
  );
  const identified = new Map(known.rows.map(({ key, id }) => [key, id]));
  return held.rows
    .filter(({ key, id }) => identified.has(key) && identified.get(key) !== id)
    .map(({ key, id }) => `port ${key}: identified by ${id}, known by ${identified.get(key)}`);
}

/**
 * A request whose result was delivered has ended as its scan has, unless it was cancelled before. One that waits is claimed, and
 * one whose scan has started runs.
 */
async function compareRequests({ monitor, operations }: Sides): Promise<string[]> {
  const known = await monitor.database.pool.query<Known>(
    `select r.id, r.state, a.state as scan, a.started_at is not null as "hasStarted", a.delivered_at is not null as "isDelivered"
     from scan_requests r left join scan_attempts a on a.request_id = r.id`,
  );
  const held = await operations.database.pool.query<{ id: string; state: string }>(
    'select id, state from scan_requests',
  );
  const byId = new Map(known.rows.map((row) => [row.id, row]));
  return held.rows.flatMap(({ id, state }) => {
    const fault = requestFault(byId.get(id), state);
    return fault === null ? [] : [`request ${id} is ${state}, ${fault}`];
  });
}

interface Known {
  id: string;
  state: string;
  scan: string | null;
  hasStarted: boolean;
  isDelivered: boolean;
}

function requestFault(known: Known | undefined, state: string): string | null {
  const isPending = state === 'queued' || state === 'running';
  if (!known) return isPending ? 'and the monitor does not know it' : null;
  if (known.isDelivered)
    return state === known.scan || state === 'cancelled' ? null : `and its scan ${known.scan}`;
  if (!isPending) return null;
  if (known.state !== 'claimed') return `and at the monitor ${known.state}`;
  const expected = known.hasStarted ? 'running' : 'queued';
  return state === expected ? null : `and the monitor says ${expected}`;
}

/** A request that has ended stays as it ended (NET-1.6). */
async function compareFinals({ operations, finals }: Pick<Pair, 'operations' | 'finals'>): Promise<string[]> {
  const { rows } = await operations.database.pool.query<{ id: string; state: string }>(
    `select id, state from scan_requests where state not in ('queued', 'running')`,
  );
  const faults = rows.flatMap(({ id, state }) => {
    const before = finals.get(id) ?? state;
    finals.set(id, before);
    return before === state ? [] : [`request ${id} was ${before} and is ${state}`];
  });
  return faults;
}
