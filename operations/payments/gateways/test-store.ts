/** The records of the test gateway, separate from the ledger. */
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { GatewayCharge } from './gateway.ts';

export interface GatewayRecord {
  cardReference: string;
  state: 'prepared' | 'succeeded' | 'declined' | 'canceled' | 'refunded';
}

/** One row for each key: the same key gives the same reference. */
export async function insertPrepared(db: Queryable, charge: GatewayCharge): Promise<string> {
  const reference = `tpay_${randomBytes(12).toString('hex')}`;
  const { rows } = await sql<{ reference: string }>`
    insert into test_gateway_charges as kept (reference, charge_key, card_reference, amount_quanta, currency, state)
    values (${reference}, ${charge.key}, ${charge.cardReference}, ${charge.amountQuanta}, ${charge.currency}, 'prepared')
    on conflict (charge_key) do update set state = kept.state returning reference`.execute(db);
  return rows[0]!.reference;
}

export async function findCharge(db: Queryable, reference: string): Promise<GatewayRecord | null> {
  const { rows } = await sql<GatewayRecord>`
    select card_reference, state from test_gateway_charges where reference = ${reference}`.execute(db);
  return rows[0] ?? null;
}

/** Only an open charge is decided, once. */
export async function decide(
  db: Queryable,
  reference: string,
  state: 'succeeded' | 'declined',
): Promise<void> {
  await sql`update test_gateway_charges set state = ${state}
    where reference = ${reference} and state = 'prepared'`.execute(db);
}

/** One statement, so it can't meet a decision half-way. */
export async function undo(db: Queryable, reference: string): Promise<'voided' | 'refunded'> {
  const { rows } = await sql<{ state: string }>`
    update test_gateway_charges
    set state = case state when 'succeeded' then 'refunded' when 'prepared' then 'canceled' else state end
    where reference = ${reference} returning state`.execute(db);
  return rows[0]?.state === 'refunded' ? 'refunded' : 'voided';
}
