/** Every statement on results of scans, on what is known of ports, and on mails about them. */

import { sql } from 'kysely';
import type { DeliveredScan } from '#contracts/admin-api/port-scans.ts';
import type {
  ScanKind,
  ScanNote,
  ScanPhase,
  ScanProfile,
  ScanService,
  ScanTransport,
} from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import { mailableMembers } from '#operations/views/alert-mail-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Source } from '../traffic/index.ts';
import { type Coverage, closedAtOf, type Evidence, type PortAnswer, type PortRow } from './merge-ports.ts';
import type { RequestedAddress } from './scan-request.ts';

/** Observations and results are kept for seven days (NET-8.R4). */
const keptFor = sql.lit(kept.scans);
/** A source that has delivered no result for so long loses an address to the next one; routine scans come every hour. */
const silence = sql.lit('3 hours');
/** Newly open ports that a mail may list. */
const openedMax = 50;
/** Closed ports that are kept of one address; the newest. */
const closedMax = 4_096;

interface SeriesRow {
  isOwner: boolean;
  isSilent: boolean;
  commonTcpAt: Date | null;
  commonUdpAt: Date | null;
  fullTcpAt: Date | null;
  fullUdpAt: Date | null;
}

/**
 * Makes the series of a generation for this source unless it exists, and locks it until the transaction ends, so that two
 * deliveries of one address follow each other. Null while another source delivers it, unless this one owns the minutes.
 */
export async function claimSeries(
  tx: Queryable,
  { id, tenantId, serverId, address }: RequestedAddress,
  { projectId, siteId }: Source,
  ownsMinutes: boolean,
): Promise<Coverage | null> {
  await sql`
    insert into port_scan_series (allocation_id, tenant_id, server_id, address, project_id, source_site_id)
    values (${id}, ${tenantId}, ${serverId}, ${address}, ${projectId}, ${siteId})
    on conflict (allocation_id) do update set attempted_at = svc_now()`.execute(tx);
  const { rows } = await sql<SeriesRow>`
    select (project_id, source_site_id) = (${projectId}::bigint, ${siteId}::bigint) as is_owner,
      received_at <= svc_now() - ${silence}::interval as is_silent, common_tcp_at, common_udp_at, full_tcp_at,
      full_udp_at
    from port_scan_series where allocation_id = ${id} for update`.execute(tx);
  const row = rows[0]!;
  if (!row.isOwner && !row.isSilent && !ownsMinutes) return null;
  return {
    common: { tcp: row.commonTcpAt, udp: row.commonUdpAt },
    full: { tcp: row.fullTcpAt, udp: row.fullUdpAt },
  };
}

/** Notes a delivery of the locked series. */
export async function noteDelivery(
  tx: Queryable,
  allocationId: number,
  { projectId, siteId }: Source,
  { common, full }: Coverage,
): Promise<void> {
  await sql`
    update port_scan_series set project_id = ${projectId}, source_site_id = ${siteId}, received_at = svc_now(),
      common_tcp_at = ${common.tcp}, common_udp_at = ${common.udp}, full_tcp_at = ${full.tcp}, full_udp_at = ${full.udp}
    where allocation_id = ${allocationId}`.execute(tx);
}

/** Stores a result; false when it is there already, of any address. */
export async function insertScan(
  tx: Queryable,
  { id, tenantId, serverId, address }: RequestedAddress,
  scan: DeliveredScan,
  kind: ScanKind,
): Promise<boolean> {
  const services = kind === 'routine' ? null : JSON.stringify(scan.services);
  const { rows } = await sql`
    insert into port_scans (scan_id, request_id, kind, allocation_id, tenant_id, server_id, address, profile, state,
      started_at, finished_at, phases, notes, ports_open, services)
    values (${scan.scan_id}::uuid, ${scan.request_id}::uuid, ${kind}, ${id}, ${tenantId}, ${serverId}, ${address},
      ${scan.profile}, ${scan.state}, ${new Date(scan.started_at)}, ${new Date(scan.finished_at)},
      ${JSON.stringify(scan.phases)}::jsonb, ${[...scan.notes]}::text[], ${scan.services.length}, ${services}::jsonb)
    on conflict (scan_id) do nothing returning 1`.execute(tx);
  return rows.length === 1;
}

/** Notes the ports that a result opened: the first ones, and how many they are. */
export async function noteOpened(tx: Queryable, scanId: string, opened: readonly PortRow[]): Promise<void> {
  if (opened.length === 0) return;
  const first = opened.slice(0, openedMax).map(({ transport, port, common, full, identified }) => {
    const { service = null, product = null } = (identified ?? full ?? common)?.answer ?? {};
    return { transport, port, service, product };
  });
  await sql`update port_scans set opened = ${JSON.stringify(first)}::jsonb, opened_count = ${opened.length}
    where scan_id = ${scanId}::uuid`.execute(tx);
}

/** True when the result is older than results are kept. */
export async function isExpired(tx: Queryable, finishedAt: string): Promise<boolean> {
  const { rows } = await sql<{ isExpired: boolean }>`
    select ${new Date(finishedAt)}::timestamptz < svc_now() - ${keptFor}::interval as is_expired`.execute(tx);
  return rows[0]!.isExpired;
}

interface StoredPort {
  allocationId: number;
  transport: ScanTransport;
  port: number;
  firstObservedAt: Date;
  commonObservedAt: Date | null;
  commonClosedAt: Date | null;
  commonScanId: string | null;
  commonService: PortAnswer | null;
  fullObservedAt: Date | null;
  fullClosedAt: Date | null;
  fullScanId: string | null;
  fullService: PortAnswer | null;
  identifiedAt: Date | null;
  identifiedScanId: string | null;
  identifiedService: PortAnswer | null;
}

/** When a profile saw a port last; null where that has expired, though evidence of the other profile has not. */
const keptAt = (
  profile: ScanProfile,
) => sql`case when coalesce(${sql.ref(`${profile}_closed_at`)}, ${sql.ref(`${profile}_observed_at`)})
        > svc_now() - ${keptFor}::interval then ${sql.ref(`${profile}_observed_at`)} end`;

/** Ports of these generations whose observations have not expired. Those that closed over seven days ago are gone. */
export async function listPorts(
  db: Queryable,
  allocationIds: readonly number[],
): Promise<(PortRow & { allocationId: number })[]> {
  const { rows } = await sql<StoredPort>`
    select allocation_id, transport, port, first_observed_at, ${keptAt('common')} as common_observed_at,
      common_closed_at, common_scan_id, common_service, ${keptAt('full')} as full_observed_at, full_closed_at,
      full_scan_id, full_service,
      case when identified_at > svc_now() - ${keptFor}::interval then identified_at end as identified_at,
      identified_scan_id, identified_service
    from port_observations
    where allocation_id = any(${[...allocationIds]}::bigint[])
      and coalesce(closed_at, newest_at) > svc_now() - ${keptFor}::interval
    order by allocation_id, transport, port`.execute(db);
  return rows.map((row) => {
    const common = toEvidence(row.commonObservedAt, row.commonClosedAt, row.commonScanId, row.commonService);
    const full = toEvidence(row.fullObservedAt, row.fullClosedAt, row.fullScanId, row.fullService);
    const { allocationId, transport, port, firstObservedAt, identifiedAt: at } = row;
    return {
      allocationId,
      transport,
      port,
      firstObservedAt,
      closedAt: closedAtOf({ common, full }),
      common,
      full,
      identified: at && { at, scanId: row.identifiedScanId!, answer: row.identifiedService! },
    };
  });
}

function toEvidence(
  observedAt: Date | null,
  closedAt: Date | null,
  scanId: string | null,
  answer: PortAnswer | null,
): Evidence | null {
  if (observedAt === null || scanId === null || answer === null) return null;
  return { observedAt, closedAt, scanId, answer };
}

/** Writes rows that are new or different, of a locked series. */
export async function putPorts(
  tx: Queryable,
  allocationId: number,
  ports: readonly PortRow[],
): Promise<void> {
  if (ports.length === 0) return;
  const given = ports.map(({ transport, port, firstObservedAt, closedAt, common, full, identified }) => ({
    ...{ transport, port, first_observed_at: firstObservedAt, closed_at: closedAt },
    common_observed_at: common?.observedAt ?? null,
    common_closed_at: common?.closedAt ?? null,
    common_scan_id: common?.scanId ?? null,
    common_service: common?.answer ?? null,
    full_observed_at: full?.observedAt ?? null,
    full_closed_at: full?.closedAt ?? null,
    full_scan_id: full?.scanId ?? null,
    full_service: full?.answer ?? null,
    identified_at: identified?.at ?? null,
    identified_scan_id: identified?.scanId ?? null,
    identified_service: identified?.answer ?? null,
  }));
  await sql`
    insert into port_observations (allocation_id, transport, port, first_observed_at, closed_at, common_observed_at,
      common_closed_at, common_scan_id, common_service, full_observed_at, full_closed_at, full_scan_id, full_service,
      identified_at, identified_scan_id, identified_service)
    select ${allocationId}, g.* from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(transport text, port int,
      first_observed_at timestamptz, closed_at timestamptz, common_observed_at timestamptz,
      common_closed_at timestamptz, common_scan_id uuid, common_service jsonb, full_observed_at timestamptz,
      full_closed_at timestamptz, full_scan_id uuid, full_service jsonb, identified_at timestamptz,
      identified_scan_id uuid, identified_service jsonb)
    on conflict (allocation_id, transport, port) do update set first_observed_at = excluded.first_observed_at,
      closed_at = excluded.closed_at, common_observed_at = excluded.common_observed_at,
      common_closed_at = excluded.common_closed_at, common_scan_id = excluded.common_scan_id, common_service = excluded.common_service,
      full_observed_at = excluded.full_observed_at, full_closed_at = excluded.full_closed_at, full_scan_id = excluded.full_scan_id,
      full_service = excluded.full_service, identified_at = excluded.identified_at,
      identified_scan_id = excluded.identified_scan_id, identified_service = excluded.identified_service`.execute(
    tx,
  );
  // A server that opens other ports for every scan would fill the table.
  await sql`
    delete from port_observations where allocation_id = ${allocationId} and (transport, port) in (
      select transport, port from port_observations where allocation_id = ${allocationId} and closed_at is not null
      order by closed_at desc, transport, port offset ${closedMax})`.execute(tx);
}

/** A scan of a server, without what it found. */
export interface ScanRow {
  scanId: string;
  requestId: string | null;
  kind: ScanKind;
  address: string;
  profile: ScanProfile;
  state: 'complete' | 'partial';
  startedAt: Date;
  finishedAt: Date;
  phases: ScanPhase[];
  notes: ScanNote[];
  portsOpen: number;
}

/** Results of these generations, newest first; of routine scans or of requested ones. */
export async function listScans(
  db: Queryable,
  of: { serverId: number; tenantId: number; allocationIds: readonly number[] },
  { isRoutine, limit }: { isRoutine: boolean; limit: number },
): Promise<ScanRow[]> {
  const { rows } = await sql<ScanRow>`
    select scan_id, request_id, kind, address, profile, state, started_at, finished_at, phases, notes, ports_open
    from port_scans
    where server_id = ${of.serverId} and tenant_id = ${of.tenantId}
      and allocation_id = any(${[...of.allocationIds]}::bigint[]) and (kind = 'routine') = ${isRoutine}
      and finished_at > svc_now() - ${keptFor}::interval
    order by finished_at desc, scan_id limit ${limit}`.execute(db);
  return rows;
}

/** What a requested scan found, as it was delivered. */
export async function findServices(
  db: Queryable,
  of: { serverId: number; tenantId: number },
  requestId: string,
): Promise<ScanService[]> {
  const { rows } = await sql<{ services: ScanService[] | null }>`
    select services from port_scans
    where request_id = ${requestId}::uuid and server_id = ${of.serverId} and tenant_id = ${of.tenantId}
    order by finished_at desc limit 1`.execute(db);
  return rows[0]?.services ?? [];
}

/** When the newest complete full scan of each of these generations ended. */
export async function listFullScans(
  db: Queryable,
  of: { serverId: number; tenantId: number; allocationIds: readonly number[] },
): Promise<{ allocationId: number; finishedAt: Date }[]> {
  const { rows } = await sql<{ allocationId: number; finishedAt: Date }>`
    select allocation_id, max(finished_at) as finished_at from port_scans
    where server_id = ${of.serverId} and tenant_id = ${of.tenantId}
      and allocation_id = any(${[...of.allocationIds]}::bigint[]) and profile = 'full' and state = 'complete'
    group by allocation_id`.execute(db);
  return rows;
}

/** Deletes at most `limit` expired results and as many expired observations; returns the larger number. */
export async function deleteExpiredScans(tx: Queryable, limit: number): Promise<number> {
  const scans = await sql`
    delete from port_scans where scan_id in (select scan_id from port_scans
      where finished_at < svc_now() - ${keptFor}::interval limit ${limit})`.execute(tx);
  const ports = await sql`
    delete from port_observations where (allocation_id, transport, port) in (
      select allocation_id, transport, port from port_observations
      where newest_at < svc_now() - ${keptFor}::interval
        and coalesce(closed_at, newest_at) < svc_now() - ${keptFor}::interval limit ${limit})`.execute(tx);
  await sql`
    delete from port_scan_series s where received_at < svc_now() - ${keptFor}::interval
      and not exists (select 1 from port_scans p where p.allocation_id = s.allocation_id)
      and not exists (select 1 from port_observations o where o.allocation_id = s.allocation_id)`.execute(tx);
  return Math.max(Number(scans.numAffectedRows ?? 0n), Number(ports.numAffectedRows ?? 0n));
}

/** A mail about a scan for each member who may be mailed. */
export async function queueMails(tx: Queryable, scanId: string, serverId: number): Promise<void> {
  await sql`
    insert into port_mails (scan_id, person_id)
    select ${scanId}::uuid, reader.id from (${mailableMembers(serverId)}) reader
    on conflict do nothing`.execute(tx);
}

/** Whether one of these scans is known as one of another generation. A scan that is not known yet may be of any. */
export async function hasForeignScan(
  tx: Queryable,
  allocationId: number,
  scanIds: readonly string[],
): Promise<boolean> {
  const { rows } = await sql<{ isForeign: boolean }>`
    select exists (select 1 from port_scans where scan_id = any(${[...scanIds]}::uuid[]) and allocation_id <> ${allocationId})
      or exists (select 1 from scan_requests where id = any(${[...scanIds]}::uuid[]) and allocation_id <> ${allocationId})
      as is_foreign`.execute(tx);
  return rows[0]!.isForeign;
}

/** Whether another source delivers the scans of a generation. */
export async function isDeliveredByOther(
  tx: Queryable,
  allocationId: number,
  { projectId, siteId }: Source,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from port_scan_series where allocation_id = ${allocationId}
      and (project_id, source_site_id) <> (${projectId}::bigint, ${siteId}::bigint)
      and received_at > svc_now() - ${silence}::interval`.execute(tx);
  return rows.length > 0;
}

/** Without an accepted scan for so long, refused deliveries are what holds it back: the hourly scan is missing. */
const refusedFor = sql.lit('2 hours');

export interface ScanStatus {
  /** Of a delivery, also one that was refused or repeated. */
  attemptedAt: Date | null;
  receivedAt: Date | null;
  /** End of the newest scan that was received. */
  latestAt: Date | null;
  /** Addresses with results, and the results of the last 24 hours. */
  addresses: number;
  scans: number;
  /** Deliveries are tried and none of them was taken: another source delivers. */
  isRefused: boolean;
}

/** How the delivery of scans of a server stands (NET-2.9, NET-4.10). */
export async function readStatus(
  db: Queryable,
  of: { serverId: number; tenantId: number },
): Promise<ScanStatus> {
  const { rows } = await sql<ScanStatus>`
    select max(attempted_at) as attempted_at, max(received_at) filter (where latest.at is not null) as received_at,
      max(latest.at) as latest_at, count(latest.at)::int as addresses, coalesce(sum(day.scans), 0)::int as scans,
      coalesce(max(refused_at) > max(received_at) + ${refusedFor}::interval, false) as is_refused
    from port_scan_series series
    left join lateral (select finished_at as at from port_scans
      where allocation_id = series.allocation_id order by finished_at desc limit 1) latest on true
    left join lateral (select count(*) as scans from port_scans
      where allocation_id = series.allocation_id and finished_at > svc_now() - interval '24 hours') day on true
    where server_id = ${of.serverId} and tenant_id = ${of.tenantId}`.execute(db);
  return rows[0]!;
}

/** Notes a delivery that was refused; nothing where no source has delivered yet. */
export async function noteRefusal(tx: Queryable, allocationId: number): Promise<void> {
  await sql`update port_scan_series set attempted_at = svc_now(), refused_at = svc_now()
    where allocation_id = ${allocationId}`.execute(tx);
}
