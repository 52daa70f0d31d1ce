/** Lists of servers: the filters, orders and places to go on from that callers may name. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './scope.ts';
import { type Server, type ServerStatus, serversWhere } from './server-store.ts';

/** What a label has to be: there, absent, one value, any other value. */
export interface LabelTerm {
  key: string;
  is: 'present' | 'absent' | 'equal' | 'unequal';
  value: string;
}

export type ListOrder = 'newest' | 'oldest' | 'name' | '-name';

export interface ServerFilter {
  /** In the terms of `statusOf`. */
  statuses?: readonly string[];
  name?: string;
  /** Part of a name, a host name or an address; for people. */
  search?: string;
  /** By slug or id. */
  plan?: string;
  location?: string;
  /** Only servers with a network interface on this network. */
  networkId?: number;
  labels?: readonly LabelTerm[];
  createdAfter?: Date;
  /** The last server of the page before; `name` as it was then, for the orders by name. */
  after?: { id: number; name: string };
  order: ListOrder;
  limit: number;
}

function conditionsOf(scope: Scope, filter: ServerFilter) {
  const conditions = [sql`s.provisioning_state <> 'deleted'`];
  if (scope !== 'all') conditions.push(ofTenants(scope));
  if (filter.name !== undefined) conditions.push(sql`s.name = ${filter.name}`);
  if (filter.plan !== undefined)
    conditions.push(sql`(p.slug = ${filter.plan} or p.id::text = ${filter.plan})`);
  if (filter.location !== undefined)
    conditions.push(sql`(l.slug = ${filter.location} or l.id::text = ${filter.location})`);
  if (filter.networkId !== undefined)
    conditions.push(
      sql`exists (select 1 from network_attachments a where a.server_id = s.id and a.network_id = ${filter.networkId})`,
    );
  if (filter.createdAfter !== undefined) conditions.push(sql`s.created_at > ${filter.createdAfter}`);
  if (filter.statuses !== undefined) {
    conditions.push(sql`case s.provisioning_state when 'ready' then s.power_state else s.provisioning_state end
      = any(${[...filter.statuses]})`);
  }
  for (const term of filter.labels ?? []) conditions.push(labelCondition(term));
  if (filter.search !== undefined) conditions.push(searchCondition(filter.search));
  return conditions;
}

/** By equality for a scope of one, as of every call of the API: PostgreSQL keeps a plan of that, and none for a list of one. */
function ofTenants(scope: readonly number[]) {
  const [only, ...others] = scope;
  return only !== undefined && others.length === 0
    ? sql`s.tenant_id = ${only}`
    : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
}

function labelCondition({ key, is, value }: LabelTerm) {
  switch (is) {
    case 'present':
      return sql`jsonb_exists(s.labels, ${key})`;
    case 'absent':
      return sql`not jsonb_exists(s.labels, ${key})`;
    case 'equal':
      return sql`s.labels ->> ${key} = ${value}`;
    case 'unequal':
      return sql`s.labels ->> ${key} is distinct from ${value}`;
  }
}

function searchCondition(words: string) {
  const pattern = `%${words.replaceAll(/[\\%_]/g, '\\$&')}%`;
  return sql`(s.name ilike ${pattern} or s.hostname ilike ${pattern} or s.id::text = ${words} or exists (
    select 1 from allocations a where a.server_id = s.id and a.released_at is null
      and host(a.address) like ${pattern}))`;
}

/** Servers behind `after`, exactly: created moments never change, and a name is compared as it was on that page. */
function afterCondition(scope: Scope, order: ListOrder, after: { id: number; name: string }) {
  // Of the scope's own only: a cursor made up with another's id must not tell when that one was created.
  const owned = scope === 'all' ? sql`true` : sql`tenant_id = any(${[...scope]}::bigint[])`;
  const created = sql`(select created_at, id from servers where id = ${after.id} and ${owned})`;
  switch (order) {
    case 'newest':
      return sql`(s.created_at, s.id) < ${created}`;
    case 'oldest':
      return sql`(s.created_at, s.id) > ${created}`;
    case 'name':
      return sql`(s.name, s.id) > (${after.name}, ${after.id}::bigint)`;
    case '-name':
      return sql`(s.name, s.id) < (${after.name}, ${after.id}::bigint)`;
  }
}

const orderTexts: Record<ListOrder, string> = {
  newest: 'created_at desc, id desc',
  oldest: 'created_at, id',
  name: 'name, id',
  '-name': 'name desc, id desc',
};

/** A page of the scope's living servers. */
export async function listServers(db: Queryable, scope: Scope, filter: ServerFilter): Promise<Server[]> {
  const conditions = conditionsOf(scope, filter);
  if (filter.after !== undefined) conditions.push(afterCondition(scope, filter.order, filter.after));
  const order = `order by ${orderTexts[filter.order]}`;
  const statement = serversWhere(sql.join(conditions, sql` and `), {
    order,
    limit: sql`limit ${filter.limit}`,
  });
  return (await statement.execute(db)).rows;
}

/** How many of the scope's living servers have each status; those that none has are left out. */
export async function countByStatus(db: Queryable, scope: Scope): Promise<Map<ServerStatus, number>> {
  const { rows } = await sql<{ status: ServerStatus; count: number }>`
    select case s.provisioning_state when 'ready' then s.power_state else s.provisioning_state end as status,
      count(*) as count
    from servers s where ${sql.join(conditionsOf(scope, { order: 'newest', limit: 0 }), sql` and `)}
    group by 1`.execute(db);
  return new Map(rows.map((row) => [row.status, row.count]));
}

/** How many there are on all pages. */
export async function countServers(db: Queryable, scope: Scope, filter: ServerFilter): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from servers s join plans p on p.id = s.plan_id
    join clusters c on c.id = s.cluster_id join locations l on l.id = c.location_id
    where ${sql.join(conditionsOf(scope, filter), sql` and `)}`.execute(db);
  return rows[0]!.count;
}
