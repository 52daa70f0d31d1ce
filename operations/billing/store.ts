import { CompiledQuery, sql } from 'kysely';
import { type AccessFacts, accessColumns } from '#operations/views/tenant-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface NewEntry {
  tenantId: number;
  amountQuanta: number;
  description: string;
  /** `reference` makes the entry unique within its source. */
  metadata: { source: string; reference?: string } & Record<string, unknown>;
}

export interface LedgerEntry {
  id: number;
  amountQuanta: number;
  description: string;
  metadata: { source: string } & Record<string, unknown>;
  createdAt: Date;
}

/** The same facts with the balance locked until the transaction ends: two orders can't both see the last credit. */
export async function lockAccess(
  tx: Queryable,
  tenantId: number,
  gateway: string,
): Promise<AccessFacts | null> {
  await sql`insert into credit_balances (tenant_id) values (${tenantId}) on conflict do nothing`.execute(tx);
  await sql`select 1 from credit_balances where tenant_id = ${tenantId} for update`.execute(tx);
  const query = CompiledQuery.raw(`${accessColumns} where t.id = $1`, [tenantId, gateway]);
  const { rows } = await tx.executeQuery<AccessFacts>(query);
  return rows[0] ?? null;
}

export async function findBalance(db: Queryable, tenantId: number): Promise<number> {
  const { rows } = await sql<{ balance: number }>`
    select balance_quanta as balance from credit_balances where tenant_id = ${tenantId}`.execute(db);
  return rows[0]?.balance ?? 0;
}

/**
 * The balances of those of these accounts that no other transaction holds, locked until this one ends. Periodic work
 * takes these and comes back for the others, so that one locked account does not hold up the rest.
 */
export async function lockFreeBalances(
  tx: Queryable,
  tenantIds: readonly number[],
): Promise<Map<number, number>> {
  const ids = [...new Set(tenantIds)].sort((a, b) => a - b);
  await sql`insert into credit_balances (tenant_id)
    select id from unnest(${ids}::bigint[]) as id order by id on conflict do nothing`.execute(tx);
  const { rows } = await sql<{ tenantId: number; balance: number }>`
    select tenant_id, balance_quanta as balance from credit_balances
    where tenant_id = any(${ids}::bigint[]) order by tenant_id for update skip locked`.execute(tx);
  return new Map(rows.map(({ tenantId, balance }) => [tenantId, balance]));
}

/** Appends an entry and updates the balance; false, without a change, when its reference was entered before. */
export async function appendLedgerEntry(tx: Queryable, entry: NewEntry): Promise<boolean> {
  const { rows } = await sql`
    insert into ledger_entries (tenant_id, amount_quanta, description, metadata)
    values (${entry.tenantId}, ${entry.amountQuanta}, ${entry.description}, ${JSON.stringify(entry.metadata)}::jsonb)
    on conflict do nothing returning 1`.execute(tx);
  if (rows.length === 0) return false;
  const isDeposit = entry.metadata.source === 'deposit';
  await sql`
    insert into credit_balances as held (tenant_id, balance_quanta, has_deposit)
    values (${entry.tenantId}, ${entry.amountQuanta}, ${isDeposit})
    on conflict (tenant_id) do update set balance_quanta = held.balance_quanta + excluded.balance_quanta,
      has_deposit = held.has_deposit or excluded.has_deposit, updated_at = svc_now()`.execute(tx);
  return true;
}

/**
 * Whether money was ever paid in, once a payment was given back: a deposit that was refunded opens nothing. To be called
 * in the transaction that enters the refund.
 */
export async function forgetDeposit(tx: Queryable, tenantId: number): Promise<void> {
  await sql`update credit_balances set has_deposit = exists (
      select 1 from ledger_entries d where d.tenant_id = ${tenantId} and d.metadata ->> 'source' = 'deposit'
        and not exists (select 1 from ledger_entries r where r.tenant_id = ${tenantId}
          and r.metadata ->> 'source' = 'refund' and r.metadata ->> 'reference' = d.metadata ->> 'reference'))
    where tenant_id = ${tenantId}`.execute(tx);
}

/** Which entries of a ledger are wanted. */
export interface LedgerFilter {
  source?: string;
  /** Such as `2025-11`. */
  period?: string;
  beforeId?: number;
  limit: number;
}

function matching(tenantId: number, filter: Omit<LedgerFilter, 'limit'>) {
  const conditions = [sql`tenant_id = ${tenantId}`];
  if (filter.source !== undefined) conditions.push(sql`metadata ->> 'source' = ${filter.source}`);
  if (filter.period !== undefined)
    conditions.push(sql`created_at >= to_date(${filter.period}, 'YYYY-MM')::timestamp at time zone 'utc'
      and created_at < (to_date(${filter.period}, 'YYYY-MM') + interval '1 month') at time zone 'utc'`);
  if (filter.beforeId !== undefined) conditions.push(sql`id < ${filter.beforeId}`);
  return sql.join(conditions, sql` and `);
}

export async function countEntries(
  db: Queryable,
  tenantId: number,
  filter: Omit<LedgerFilter, 'limit'>,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ledger_entries where ${matching(tenantId, filter)}`.execute(db);
  return rows[0]!.count;
}

/** Newest first. */
export async function listEntries(
  db: Queryable,
  tenantId: number,
  filter: LedgerFilter,
): Promise<LedgerEntry[]> {
  const { rows } = await sql<LedgerEntry>`
    select id, amount_quanta, description, metadata, created_at
    from ledger_entries where ${matching(tenantId, filter)} order by id desc limit ${filter.limit}`.execute(
    db,
  );
  return rows;
}

export interface SourceSum {
  source: string;
  /** Negative for what was charged. */
  quanta: number;
}

/** The sum of each source in the current month. */
export async function sumMonth(db: Queryable, tenantId: number): Promise<SourceSum[]> {
  const { rows } = await sql<SourceSum>`
    select metadata ->> 'source' as source, sum(amount_quanta)::bigint as quanta from ledger_entries
    where tenant_id = ${tenantId} and created_at >= date_trunc('month', svc_now() at time zone 'utc') at time zone 'utc'
    group by 1 order by 1`.execute(db);
  return rows;
}
