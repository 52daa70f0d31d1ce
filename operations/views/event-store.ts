/** Events and changes of servers: what happened within a range of time, and whose a new event or change is. */
import { type RawBuilder, sql } from 'kysely';
import type { WebhookEventType } from '#contracts/customer-api/index.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
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
    select server_id, at, kind, name, status, outcome, is_on, id, address, is_drill
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
    select server_id, at, kind, name, status, outcome, is_on, id, address, is_drill
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

type AttackEventType = Extract<WebhookEventType, `server.attack_${string}` | `server.filter_${string}`>;
type PortEventType = Extract<WebhookEventType, `server.port_${string}`>;
type ScanEventType = Extract<WebhookEventType, 'server.scan_completed'>;
type FindingEventType = Extract<WebhookEventType, 'server.finding_new'>;

/** Whose event it is follows from the thing that it is about, never from what a caller says. */
export type NewEvent =
  | { type: AttackEventType; serverId: number; incidentId: string }
  | {
      type: PortEventType;
      serverId: number;
      scanId: string;
      address: string;
      transport: ScanTransport;
      port: number;
    }
  | { type: ScanEventType; serverId: number; scanId: string; address: string }
  | {
      type: FindingEventType;
      serverId: number;
      address: string;
      transport: ScanTransport;
      port: number;
      cveId: string;
      fingerprint: string;
      severity: string | null;
    }
  | {
      type: Exclude<
        Extract<WebhookEventType, `server.${string}` | `firewall.${string}`>,
        AttackEventType | PortEventType | ScanEventType | FindingEventType
      >;
      serverId: number;
    }
  | { type: Extract<WebhookEventType, `address.${string}`>; addressId: number; serverId: number | null }
  | { type: Extract<WebhookEventType, `snapshot.${string}`>; snapshotId: number }
  | { type: Extract<WebhookEventType, 'action.finished'>; serverId: number; actionId: number }
  | {
      type: Extract<WebhookEventType, `network.${string}`>;
      networkId: number;
      tenantId: number;
    }
  | {
      type: Extract<WebhookEventType, 'usage.threshold' | 'bandwidth.threshold' | 'bandwidth.limited'>;
      tenantId: number;
      /** `2025-11`. */
      period: string;
      percent: 50 | 80 | 100;
    }
  | { type: Extract<WebhookEventType, `key.${string}`>; keyId: string }
  | {
      type: Extract<WebhookEventType, 'account.locked'>;
      tenantId: number;
      reason: 'account_suspended' | 'account_closed';
    };

/** Whose event it is, as a query that the insert of the event takes its row from. */
export function eventRow(event: NewEvent) {
  if ('addressId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('address_id', r.id,
        'address', host(r.address), 'server_id', ${event.serverId}::bigint, 'tenant_id', t.id,
        'href', '/api/v2/addresses/' || r.id || '?tenant=' || t.id)
      from reserved_addresses r join tenants t on t.id = r.tenant_id where r.id = ${event.addressId}`;
  }
  if ('snapshotId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('snapshot_id', c.id,
        'server_id', s.id, 'tenant_id', t.id, 'href', '/api/v2/snapshots/' || c.id || '?tenant=' || t.id)
      from server_snapshots c join servers s on s.id = c.server_id join tenants t on t.id = s.tenant_id
      where c.id = ${event.snapshotId}`;
  }
  if ('actionId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('action_id', ${event.actionId}::bigint,
        'server_id', s.id, 'tenant_id', t.id, 'href', '/api/v2/servers/' || s.id || '/actions?tenant=' || t.id)
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('incidentId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('incident_id', ${event.incidentId}::text,
        'server_id', s.id, 'tenant_id', t.id, 'href', '/api/v2/servers/' || s.id || '/incidents?tenant=' || t.id)
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('scanId' in event) {
    const port =
      'port' in event
        ? sql`jsonb_build_object('transport', ${event.transport}::text, 'port', ${event.port}::int)`
        : sql`'{}'::jsonb`;
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('scan_id', ${event.scanId}::text,
        'server_id', s.id, 'tenant_id', t.id, 'address', ${event.address}::text,
        'href', '/api/v2/servers/' || s.id || '/ports?tenant=' || t.id) || ${port}
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('cveId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('server_id', s.id, 'tenant_id', t.id,
        'address', ${event.address}::text, 'transport', ${event.transport}::text, 'port', ${event.port}::int,
        'cve_id', ${event.cveId}::text, 'fingerprint', ${event.fingerprint}::text, 'severity', ${event.severity}::text,
        'href', '/api/v2/servers/' || s.id || '/findings?tenant=' || t.id)
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('serverId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('server_id', s.id,
        'tenant_id', t.id, 'href', '/api/v2/servers/' || s.id || ${event.type === 'firewall.applied' ? '/firewall' : ''}
        || '?tenant=' || t.id)
      from servers s join tenants t on t.id = s.tenant_id where s.id = ${event.serverId}`;
  }
  if ('networkId' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('network_id', ${event.networkId}::bigint,
        'tenant_id', t.id, 'href', '/api/v2/networks/' || ${event.networkId}::bigint || '?tenant=' || t.id)
      from tenants t where t.id = ${event.tenantId}`;
  }
  if ('keyId' in event) {
    return sql`select ${event.type}, k.organization_id, null::bigint, jsonb_build_object('key_id', k.key_id,
        'organization_id', k.organization_id, 'href', '/api/v2/key')
      from api_keys k where k.key_id = ${event.keyId}`;
  }
  if ('percent' in event) {
    return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('tenant_id', t.id,
        'period', ${event.period}::text, 'percent', ${event.percent}::int,
        'href', ${event.type === 'usage.threshold' ? `/api/v2/usage?period=${event.period}&tenant=` : '/api/v2/account?tenant='}::text || t.id)
      from tenants t where t.id = ${event.tenantId}`;
  }
  return sql`select ${event.type}, t.organization_id, t.id, jsonb_build_object('tenant_id', t.id,
      'reason', ${event.reason}::text, 'href', '/api/v2/tenants')
    from tenants t where t.id = ${event.tenantId}`;
}

/** No row for a server that is still being made, is being destroyed or is gone. */
export function serverChangeRow(serverId: number, kind: string) {
  return sql`select cluster_id, id, ${kind}::text from servers
    where id = ${serverId} and provisioning_state = 'ready'`;
}
