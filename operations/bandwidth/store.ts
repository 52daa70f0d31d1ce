/** Statements on readings and daily use. Owners are filtered here. */
import { sql } from 'kysely';
import { lockLiving } from '#operations/servers/index.ts';
import { observedDays, ownScanDays } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { DayUse, StoredReading } from './reading.ts';

export interface MeasuredServer {
  serverId: number;
  tenantId: number;
  /** From when on it can have used anything. */
  sinceMs: number;
  before: StoredReading | null;
}

/** Those of the servers that live, with their newest reading, locked: two writers of one server wait for one another. */
export async function lockMeasured(tx: Queryable, serverIds: readonly number[]): Promise<MeasuredServer[]> {
  const servers = await lockLiving(tx, 'all', serverIds);
  // Read once the rows are locked: the locking statement could still see the reading before the last one.
  const { rows } = await sql<StoredTotals>`
    select distinct on (server_id) server_id as "serverId", boot, inbound_total as "inboundTotal",
      outbound_total as "outboundTotal", read_at as "readAt"
    from bandwidth_readings where server_id = any(${servers.map(({ id }) => id)}::bigint[])
    order by server_id, boot desc`.execute(tx);
  const newest = new Map(
    rows.map(({ serverId, readAt, ...totals }) => [serverId, { ...totals, readAtMs: readAt.getTime() }]),
  );
  return servers.map(({ id, tenantId, since }) => ({
    serverId: id,
    tenantId,
    sinceMs: since.getTime(),
    before: newest.get(id) ?? null,
  }));
}

interface StoredTotals {
  serverId: number;
  boot: number;
  inboundTotal: number;
  outboundTotal: number;
  readAt: Date;
}

export async function putReading(tx: Queryable, serverId: number, reading: StoredReading): Promise<void> {
  await sql`insert into bandwidth_readings (server_id, boot, inbound_total, outbound_total, read_at)
    values (${serverId}, ${reading.boot}, ${reading.inboundTotal}, ${reading.outboundTotal},
      ${new Date(reading.readAtMs)})
    on conflict (server_id, boot) do update set inbound_total = excluded.inbound_total,
      outbound_total = excluded.outbound_total, read_at = excluded.read_at`.execute(tx);
}

/** Adds to what the hypervisor's counters have shown of a day. */
export async function addToDay(
  tx: Queryable,
  server: { serverId: number; tenantId: number },
  use: DayUse,
  sampledAtMs: number,
): Promise<void> {
  await sql`insert into bandwidth_days as kept
      (server_id, day, source, tenant_id, inbound_bytes, outbound_bytes, last_sampled_at)
    values (${server.serverId}, ${use.day}, 'hypervisor', ${server.tenantId}, ${use.inboundBytes},
      ${use.outboundBytes}, ${new Date(sampledAtMs)})
    on conflict (server_id, day, source) do update set
      inbound_bytes = kept.inbound_bytes + excluded.inbound_bytes,
      outbound_bytes = kept.outbound_bytes + excluded.outbound_bytes,
      last_sampled_at = greatest(kept.last_sampled_at, excluded.last_sampled_at)`.execute(tx);
}

/**
 * Brings the days since `fromMs` up to what the stored minutes say. Computed anew each time, so it may run any number of
 * times; minutes that were deleted by retention never make a day smaller.
 */
export async function rollMinutes(tx: Queryable, fromMs: number): Promise<void> {
  await sql`insert into bandwidth_days as kept
      (server_id, day, source, tenant_id, inbound_bytes, outbound_bytes, last_sampled_at)
    select server_id, day, 'telemetry', tenant_id, inbound_bytes, outbound_bytes, last_sampled_at
    from (${observedDays(fromMs)}) observed
    where true
    on conflict (server_id, day, source) do update set
      inbound_bytes = greatest(kept.inbound_bytes, excluded.inbound_bytes),
      outbound_bytes = greatest(kept.outbound_bytes, excluded.outbound_bytes),
      last_sampled_at = greatest(kept.last_sampled_at, excluded.last_sampled_at)`.execute(tx);
}

/** The same of what the provider's own port scans caused, whichever source says what was used. */
export async function rollOwnScans(tx: Queryable, fromMs: number): Promise<void> {
  await sql`insert into bandwidth_own_scans as kept (server_id, day, inbound_bytes, outbound_bytes)
    select server_id, day, inbound_bytes, outbound_bytes from (${ownScanDays(fromMs)}) observed
    where true
    on conflict (server_id, day) do update set
      inbound_bytes = greatest(kept.inbound_bytes, excluded.inbound_bytes),
      outbound_bytes = greatest(kept.outbound_bytes, excluded.outbound_bytes)`.execute(tx);
}
