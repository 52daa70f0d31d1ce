/** What happened to servers within a range of time, for the time axes of their charts. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './scope.ts';

export interface ServerEvent {
  serverId: number;
  at: Date;
  /**
   * `action`: what was asked of it, at its end or, while it goes on, its request. `power`: its present power state, where no action led
   * to it. `change`: an entry of the audit trail.
   */
  kind: 'action' | 'power' | 'change' | 'attack' | 'scan';
  /** The command, the power state, the operation, the class of the attack, or the kind of the scan. */
  name: string;
  /** Of an action. */
  status: string | null;
  outcome: string | null;
  /** Of `firewall.switch`: what it was switched to; null where it stayed as it was. */
  isOn: boolean | null;
  /** The incident, or the requested scan whose result has a page. */
  id: string | null;
  /** Of an attack and a scan. */
  address: string | null;
  isDrill: boolean;
}

/** Addresses and networks: one of the values, or with `isNot` none of them. */
export interface AddressCondition {
  isNot: boolean;
  values: readonly string[];
}

export interface ServerEventQuery {
  /** Customers see no attacks and scans of servers whose protection views are off. */
  scope: Scope;
  fromMs: number;
  toMs: number;
  /** Each narrows attacks and scans. */
  addresses: readonly AddressCondition[];
  limit: number;
}

const within = (column: RawBuilder<unknown>, { fromMs, toMs }: Pick<ServerEventQuery, 'fromMs' | 'toMs'>) =>
  sql`${column} >= ${new Date(fromMs)}::timestamptz and ${column} < ${new Date(toMs)}::timestamptz`;

const ownedBy = (column: RawBuilder<unknown>, scope: Scope) =>
  scope === 'all' ? sql`true` : sql`${column} = any(${[...scope]}::bigint[])`;

function onAddresses(column: RawBuilder<unknown>, addresses: ServerEventQuery['addresses']) {
  const conditions = addresses.map(({ isNot, values }) => {
    const one = sql`${column} <<= any(${[...values]}::inet[])`;
    return isNot ? sql`not ${one}` : one;
  });
  return sql.join([sql`true`, ...conditions], sql` and `);
}

/** The columns of an attack `i`, in the order of all events. */
const attackColumns = sql`i.server_id, i.started_at as at, 'attack' as kind, i.class as name, null::text as status,
  null::text as outcome, null::boolean as is_on, i.incident_id::text as id, i.address, i.is_drill`;

/**
 * Events of a few servers, newest first. Each kind is looked up server by server in an index that has the server first, so that the
 * events of others cost nothing.
 */
export async function listServerEvents(
  db: Queryable,
  serverIds: readonly number[],
  query: ServerEventQuery,
  /** Operations of the audit trail. */
  operations: readonly string[],
): Promise<ServerEvent[]> {
  const { scope, addresses, limit } = query;
  const newest = (order: RawBuilder<unknown>) => sql`order by ${order} desc limit ${limit}`;
  const { rows } = await sql<ServerEvent>`
    with chosen as materialized (
      select s.id, s.tenant_id, ${scope === 'all' ? sql`true` : sql`coalesce(p.views_on, true)`} as is_shown
      from servers s left join protect_settings p on p.server_id = s.id
      where s.id = any(${[...serverIds]}::bigint[]) and ${ownedBy(sql`s.tenant_id`, scope)}),
    happened as (
      select e.* from chosen c cross join lateral (
        select i.server_id, coalesce(i.finished_at, i.created_at) as at, 'action' as kind, i.command as name, i.status,
          i.outcome, null::boolean as is_on, null::text as id, null::text as address, false as is_drill
        from server_actions i
        where i.server_id = c.id and i.changed and ${within(sql`coalesce(i.finished_at, i.created_at)`, query)}
        ${newest(sql`i.id`)}) e
      union all
      select s.id, s.status_changed_at, 'power', s.power_state, null, null, null, null, null, false
      from chosen c join servers s on s.id = c.id
      where s.provisioning_state = 'ready' and s.power_state in ('running', 'stopped', 'unknown')
        and ${within(sql`s.status_changed_at`, query)}
        -- An action ends in the transaction that sets the state it led to.
        and not exists (select 1 from server_actions i where i.server_id = s.id and i.finished_at = s.status_changed_at)
      union all
      select e.* from chosen c cross join lateral (
        select c.id, i.occurred_at, 'change', i.operation, null, null, (i.after ->> 'isEnabled')::boolean, null, null, false
        from audit_entries i
        where i.subject_kind = 'server' and i.subject_id = c.id::text and i.tenant_id = c.tenant_id
          and i.operation = any(${[...operations]}::text[]) and ${within(sql`i.occurred_at`, query)}
        ${newest(sql`i.id`)}) e
      union all
      select e.* from chosen c cross join lateral (
        select ${attackColumns} from protect_incidents i
        where c.is_shown and i.server_id = c.id and i.tenant_id = c.tenant_id and i.severity = 'attack'
          and ${within(sql`i.started_at`, query)} and ${onAddresses(sql`i.address::inet`, addresses)}
        ${newest(sql`i.started_at`)}) e
      union all
      select e.* from chosen c cross join lateral (
        select i.server_id, i.started_at, 'scan', i.kind, null, null, null::boolean,
          case when exists (select 1 from port_scans r where r.request_id = i.id)
            and exists (select 1 from allocations a where a.id = i.allocation_id and a.released_at is null)
          then i.id::text end, i.address, false
        from scan_requests i
        where c.is_shown and i.server_id = c.id and i.tenant_id = c.tenant_id
          and ${within(sql`i.started_at`, query)} and ${onAddresses(sql`i.address::inet`, addresses)}
        ${newest(sql`i.requested_at`)}) e
      union all
      select e.* from chosen c cross join lateral (
        select i.server_id, i.started_at, 'scan', i.kind, null, null, null::boolean, null::text, i.address, false
        from port_scans i
        where c.is_shown and i.server_id = c.id and i.tenant_id = c.tenant_id and i.kind = 'routine' and i.profile = 'full'
          and ${within(sql`i.started_at`, query)} and ${onAddresses(sql`i.address::inet`, addresses)}
        ${newest(sql`i.finished_at`)}) e)
    select server_id as "serverId", at, kind, name, status, outcome, is_on as "isOn", id, address, is_drill as "isDrill"
    from happened order by at desc, server_id, kind, name, id limit ${limit}`.execute(db);
  return rows;
}

/** Attacks on many servers, and from them, newest first; `serverIds` null: all of the scope. */
export async function listAttackEvents(
  db: Queryable,
  serverIds: readonly number[] | null,
  query: ServerEventQuery,
): Promise<ServerEvent[]> {
  const { scope, addresses, limit } = query;
  const isShown =
    scope === 'all'
      ? sql`true`
      : sql`not exists (select 1 from protect_settings p where p.server_id = i.server_id and not p.views_on)`;
  const { rows } = await sql<ServerEvent>`
    select server_id as "serverId", at, kind, name, status, outcome, is_on as "isOn", id, address, is_drill as "isDrill"
    from (select ${attackColumns} from protect_incidents i
      where ${ownedBy(sql`i.tenant_id`, scope)} and ${isShown} and i.severity = 'attack'
        and ${within(sql`i.started_at`, query)} and ${onAddresses(sql`i.address::inet`, addresses)}
        and ${serverIds === null ? sql`true` : sql`i.server_id = any(${[...serverIds]}::bigint[])`}
      order by i.started_at desc, i.incident_id desc limit ${limit}) e
    order by at desc, id desc`.execute(db);
  return rows;
}

/** Which of these servers had an address within the range that passes; the first ones by id. */
export async function listServersOfAddresses(
  db: Queryable,
  serverIds: readonly number[],
  query: ServerEventQuery,
): Promise<number[]> {
  const { scope, addresses, limit, fromMs, toMs } = query;
  const { rows } = await sql<{ id: number }>`
    select distinct a.server_id as id from allocations a
    where ${ownedBy(sql`a.tenant_id`, scope)} and a.server_id = any(${[...serverIds]}::bigint[])
      and a.assigned_at < ${new Date(toMs)} and coalesce(a.released_at, 'infinity') > ${new Date(fromMs)}
      and ${onAddresses(sql`a.address`, addresses)}
    order by a.server_id limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}
