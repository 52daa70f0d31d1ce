/** Verdicts about foreign addresses that changed after their facts were stored, as spans of minutes. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface VerdictSpan {
  siteId: number;
  captureId: number;
  address: string;
  segment: string;
  fromMinute: number;
  /** Inclusive. */
  toMinute: number;
  isForeign: boolean;
  /** Rows with an epoch of their own from this one on know better. */
  epoch: number;
}

/** Which changes of verdicts are known by now; call it under `share`, which changes wait for. */
export async function readVerdictEpoch(trx: Queryable): Promise<number> {
  const { rows } = await sql<{ epoch: number }>`
    select last_value::float8 as epoch from fact_verdict_epochs`.execute(trx);
  return rows[0]!.epoch;
}

/** A new epoch, and the sites that may have facts. */
export async function beginEpoch(trx: Queryable): Promise<{ epoch: number; siteIds: number[] }> {
  const { rows } = await sql<{ epoch: number; siteIds: number[] }>`
    select nextval('fact_verdict_epochs')::float8 as epoch,
      coalesce((select array_agg(distinct site_id::float8) from captures), '{}') as site_ids`.execute(trx);
  return rows[0]!;
}

const spanColumns = sql`site_id, capture_id, host(address) as address, segment,
  extract(epoch from from_minute)::float8 as from_minute, extract(epoch from to_minute)::float8 as to_minute,
  is_foreign, epoch`;

export interface VerdictRange {
  siteIds: readonly number[];
  fromMinute: number;
  toMinute: number;
}

/** In the order in which they were written. */
export async function listSpans(db: Queryable, range: VerdictRange): Promise<VerdictSpan[]> {
  const { rows } = await sql<VerdictSpan>`
    select ${spanColumns} from fact_verdicts
    where site_id = any(${[...range.siteIds]}::bigint[]) and to_minute >= to_timestamp(${range.fromMinute})
      and from_minute < to_timestamp(${range.toMinute})
    order by id`.execute(db);
  return rows;
}

/** Those of some addresses at these sites, the newest last. */
export async function findSpans(
  trx: Queryable,
  siteIds: readonly number[],
  addresses: readonly string[],
): Promise<VerdictSpan[]> {
  const { rows } = await sql<VerdictSpan>`
    select ${spanColumns} from fact_verdicts
    where site_id = any(${[...siteIds]}::bigint[]) and address = any(${[...addresses]}::inet[])
    order by epoch, id`.execute(trx);
  return rows;
}

export async function writeSpans(
  trx: Queryable,
  spans: readonly Omit<VerdictSpan, 'epoch'>[],
  epoch: number,
): Promise<void> {
  if (spans.length === 0) return;
  await sql`
    insert into fact_verdicts (site_id, capture_id, address, segment, from_minute, to_minute, is_foreign, epoch)
    select site_id, capture_id, address, segment, to_timestamp(from_minute), to_timestamp(to_minute), is_foreign, ${epoch}::bigint
    from unnest(${spans.map((one) => one.siteId)}::bigint[], ${spans.map((one) => one.captureId)}::bigint[],
      ${spans.map((one) => one.address)}::inet[], ${spans.map((one) => one.segment)}::text[],
      ${spans.map((one) => one.fromMinute)}::float8[], ${spans.map((one) => one.toMinute)}::float8[],
      ${spans.map((one) => one.isForeign)}::boolean[])
      as given (site_id, capture_id, address, segment, from_minute, to_minute, is_foreign)`.execute(trx);
}
