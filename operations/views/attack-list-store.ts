/** Attacks with the customer and the server that they are about. */
import { sql } from 'kysely';
import type { AttackDirection, IncidentState } from '#contracts/incidents.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** An incident in the list of all customers' attacks. */
export interface AttackRow {
  id: string;
  serverId: number;
  serverName: string;
  tenantId: number;
  tenantName: string;
  address: string;
  direction: AttackDirection;
  class: string;
  severity: 'attack' | 'info';
  state: IncidentState;
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

/**
 * The state of an incident `i` now: an active one without an observation for 90 seconds is stale, also when it is the monitor
 * that is silent (NET-3.2).
 */
export const incidentStateNow = sql<AttackRow['state']>`case
  when i.state = 'active' and i.last_observed_at < svc_now() - interval '90 seconds' then 'stale' else i.state end`;

/** A released address has no open incident: its end can't be observed. */
const isOpen = sql`i.state <> 'recovered' and a.released_at is null`;

/** Incidents of all customers, newest first; `states` other than recovered are open ones only. */
export async function listAttacks(db: Queryable, query: AttackQuery): Promise<AttackRow[]> {
  const { id, states, severity, class: name, tenantId, serverId, after, limit } = query;
  const conditions = [
    sql`true`,
    ...(id ? [sql`i.incident_id = ${id}::uuid`] : []),
    ...(states
      ? [sql`${incidentStateNow} = any(${[...states]}::text[]) and (i.state = 'recovered' or ${isOpen})`]
      : []),
    ...(severity ? [sql`i.severity = ${severity}`] : []),
    ...(name ? [sql`i.class = ${name}`] : []),
    ...(tenantId ? [sql`i.tenant_id = ${tenantId}`] : []),
    ...(serverId ? [sql`i.server_id = ${serverId}`] : []),
    ...(after
      ? [sql`(i.started_at, i.incident_id) < (${new Date(after.startedMs)}::timestamptz, ${after.id}::uuid)`]
      : []),
  ];
  const { rows } = await sql<AttackRow>`
    select i.incident_id as id, i.server_id, s.name as server_name, i.tenant_id, t.name as tenant_name, i.address,
      i.direction, i.class, i.severity, ${incidentStateNow} as state, i.started_at, i.last_observed_at,
      i.recovered_at, i.peak_bps, i.peak_pps, i.is_drill, a.released_at is not null as is_released
    from protect_incidents i join servers s on s.id = i.server_id join tenants t on t.id = i.tenant_id
      join allocations a on a.id = i.allocation_id
    where ${sql.join(conditions, sql` and `)}
    order by i.started_at desc, i.incident_id desc limit ${limit}`.execute(db);
  return rows;
}

/** Open attacks with an observation within a day, without drills. */
export interface OpenAttackCounts {
  /** Active ones, and the servers that have one. */
  attacks: number;
  servers: number;
  stale: number;
}

export async function countOpenAttacks(db: Queryable): Promise<OpenAttackCounts> {
  const isActive = sql`${incidentStateNow} = 'active'`;
  const { rows } = await sql<OpenAttackCounts>`
    select count(*) filter (where ${isActive}) as attacks, count(distinct i.server_id) filter (where ${isActive}) as servers,
      count(*) filter (where not (${isActive})) as stale
    from protect_incidents i join allocations a on a.id = i.allocation_id
    where ${isOpen} and i.severity = 'attack' and not i.is_drill and i.last_observed_at > svc_now() - interval '1 day'`.execute(
    db,
  );
  return rows[0]!;
}
