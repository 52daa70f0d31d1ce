/** Attacks with the customer and the server that they are about. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** An incident in the list of all customers' attacks. */
export interface AttackRow {
  id: string;
  serverId: number;
  serverName: string;
  tenantId: number;
  tenantName: string;
  address: string;
  direction: 'inbound' | 'outbound';
  class: string;
  severity: 'attack' | 'info';
  state: 'active' | 'stale' | 'recovered';
  startedAt: Date;
  lastObservedAt: Date;
  recoveredAt: Date | null;
  peakBps: number;
  peakPps: number;
  isDrill: boolean;
  /** The server has the address no more: nothing more will be told of it. */
  isReleased: boolean;
}

export interface AttackQuery {
  /** Of this incident alone. */
  id?: string | undefined;
  states?: readonly string[] | undefined;
  severity?: 'attack' | 'info' | undefined;
  class?: string | undefined;
  tenantId?: number | undefined;
  serverId?: number | undefined;
  /** The last one of the page before. */
  after?: { startedMs: number; id: string } | undefined;
  limit: number;
}

/** A released address has no open incident: its end can't be observed. */
const isOpen = sql`i.state <> 'recovered' and a.released_at is null`;

/** Incidents of all customers, newest first; `states` other than recovered are open ones only. */
export async function listAttacks(db: Queryable, query: AttackQuery): Promise<AttackRow[]> {
  const { id, states, severity, class: name, tenantId, serverId, after, limit } = query;
  const conditions = [
    sql`true`,
    ...(id ? [sql`i.incident_id = ${id}::uuid`] : []),
    ...(states ? [sql`i.state = any(${[...states]}::text[]) and (i.state = 'recovered' or ${isOpen})`] : []),
    ...(severity ? [sql`i.severity = ${severity}`] : []),
    ...(name ? [sql`i.class = ${name}`] : []),
    ...(tenantId ? [sql`i.tenant_id = ${tenantId}`] : []),
    ...(serverId ? [sql`i.server_id = ${serverId}`] : []),
    ...(after
      ? [sql`(i.started_at, i.incident_id) < (${new Date(after.startedMs)}::timestamptz, ${after.id}::uuid)`]
      : []),
  ];
  const { rows } = await sql<AttackRow>`
    select i.incident_id as id, i.server_id as "serverId", s.name as "serverName", i.tenant_id as "tenantId",
      t.name as "tenantName", i.address, i.direction, i.class, i.severity, i.state, i.started_at as "startedAt",
      i.last_observed_at as "lastObservedAt", i.recovered_at as "recoveredAt", i.peak_bps as "peakBps",
      i.peak_pps as "peakPps", i.is_drill as "isDrill", a.released_at is not null as "isReleased"
    from protect_incidents i join servers s on s.id = i.server_id join tenants t on t.id = i.tenant_id
      join allocations a on a.id = i.allocation_id
    where ${sql.join(conditions, sql` and `)}
    order by i.started_at desc, i.incident_id desc limit ${limit}`.execute(db);
  return rows;
}

/** Attacks that go on, with news within a day, drills left out: how many, and on how many servers. */
export async function countOpenAttacks(db: Queryable): Promise<{ attacks: number; servers: number }> {
  const { rows } = await sql<{ attacks: number; servers: number }>`
    select count(*) as attacks, count(distinct i.server_id) as servers
    from protect_incidents i join allocations a on a.id = i.allocation_id
    where ${isOpen} and i.severity = 'attack' and not i.is_drill and i.last_observed_at > svc_now() - interval '1 day'`.execute(
    db,
  );
  return rows[0]!;
}
