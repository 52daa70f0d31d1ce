import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { CopyAge } from './copy-age.ts';
import type { Advisory } from './matcher/advisory.ts';

/** What is stored of one product. */
export interface StoredProduct {
  product: string;
  attemptedAtMs: number | null;
  /** Why the last attempt failed. */
  error: string | null;
  refreshedAtMs: number | null;
  records: number;
  unreadable: number;
  deferred: number;
}

export async function listProducts(db: Queryable): Promise<StoredProduct[]> {
  const { rows } = await sql<StoredProduct>`
    select p.product, (extract(epoch from p.attempted_at) * 1000)::float8 as attempted_at_ms, p.error,
      (extract(epoch from p.refreshed_at) * 1000)::float8 as refreshed_at_ms,
      (select count(*)::int from vulnerability_advisories a where a.product = p.product) as records,
      p.unreadable, p.deferred
    from vulnerability_products p order by p.product`.execute(db);
  return rows;
}

/** Of all products that were ever asked for: the one whose records are the oldest. */
export async function readAge(db: Queryable): Promise<CopyAge> {
  const { rows } = await sql<CopyAge>`
    select extract(epoch from svc_now() - min(refreshed_at))::float8 as age_seconds,
      count(*) filter (where refreshed_at is null)::int as missing,
      extract(epoch from svc_now() - min(first_attempt_at) filter (where refreshed_at is null))::float8 as missing_seconds,
      (array_agg(error order by attempted_at desc) filter (where error is not null))[1] as error
    from vulnerability_products`.execute(db);
  return rows[0]!;
}

/** Of these, the products that were not refreshed for so long; those that were tried longest ago first. */
export async function listDue(db: Queryable, products: readonly string[], refreshSeconds: number) {
  const { rows } = await sql<{ product: string }>`
    select wanted.product from unnest(${[...products]}::text[]) with ordinality as wanted(product, place)
    left join vulnerability_products p using (product)
    where p.refreshed_at is null or p.refreshed_at <= svc_now() - make_interval(secs => ${refreshSeconds})
    order by p.attempted_at nulls first, wanted.place`.execute(db);
  return rows.map((row) => row.product);
}

/** Records of a product; null when they were never fetched. */
export async function readAdvisories(db: Queryable, product: string): Promise<Advisory[] | null> {
  const { rows } = await sql<{ isKnown: boolean; advisories: Advisory[] }>`
    select exists (select from vulnerability_products where product = ${product} and refreshed_at is not null) as is_known,
      coalesce((select jsonb_agg(advisory order by cve) from vulnerability_advisories where product = ${product}),
        '[]') as advisories`.execute(db);
  return rows[0]?.isKnown ? rows[0].advisories : null;
}

/** Records of a product, and which state of them this is. */
export interface ProductRecords {
  /** Null: they were never fetched. */
  advisories: Advisory[] | null;
  /** Grows with every change of them. */
  revision: number;
  refreshedAtMs: number | null;
}

export async function readRecords(db: Queryable, product: string): Promise<ProductRecords> {
  const { rows } = await sql<ProductRecords>`
    select p.revision, (extract(epoch from p.refreshed_at) * 1000)::float8 as refreshed_at_ms,
      case when p.refreshed_at is not null then coalesce(
        (select jsonb_agg(a.advisory order by a.cve) from vulnerability_advisories a where a.product = p.product), '[]')
      end as advisories
    from vulnerability_products p where p.product = ${product}`.execute(db);
  return rows[0] ?? { advisories: null, revision: 0, refreshedAtMs: null };
}

export async function readRevision(db: Queryable, product: string): Promise<number> {
  const { rows } = await sql<{ revision: number }>`
    select revision from vulnerability_products where product = ${product}`.execute(db);
  return rows[0]?.revision ?? 0;
}

/** The right to send one request, or the time to wait for it. */
export type RequestTurn = { claim: number } | { waitMs: number };

/** Takes the right to send one request: no other process gets it for `holdSeconds`. */
export async function claimRequest(db: Queryable, holdSeconds: number): Promise<RequestTurn> {
  const { rows } = await sql<{ claim: number | null; waitMs: number }>`
    with claimed as (
      update vulnerability_source set claim = claim + 1, not_before = svc_now() + make_interval(secs => ${holdSeconds})
      where not_before <= svc_now() returning claim)
    select (select claim from claimed) as claim,
      greatest(1, ceil(extract(epoch from not_before - svc_now()) * 1000))::float8 as wait_ms
    from vulnerability_source`.execute(db);
  const { claim, waitMs } = rows[0]!;
  return claim === null ? { waitMs } : { claim };
}

/** After the answer of this request: the next one may follow after the pause. */
export async function noteAnswer(db: Queryable, claim: number, pauseSeconds: number): Promise<void> {
  await sql`update vulnerability_source
    set failures = 0, not_before = svc_now() + make_interval(secs => ${pauseSeconds})
    where claim = ${claim}`.execute(db);
}

/** After its failure: nothing is sent before the end of the pause. */
export async function noteFailure(db: Queryable, claim: number, pauseSeconds: number): Promise<void> {
  await sql`update vulnerability_source set failures = least(failures + 1, 1000),
    not_before = svc_now() + make_interval(secs => ${pauseSeconds}) where claim = ${claim}`.execute(db);
}

/** Whether the trackers of distributions are to be read now, which one process may do; the next time comes after the pause. */
export async function claimTrackers(db: Queryable, pauseSeconds: number): Promise<boolean> {
  const { rows } = await sql`
    update vulnerability_source set trackers_after = svc_now() + make_interval(secs => ${pauseSeconds})
    where trackers_after <= svc_now() returning 1`.execute(db);
  return rows.length > 0;
}

/** Some could not be read: all of them are read again after this pause. */
export async function retryTrackers(db: Queryable, pauseSeconds: number): Promise<void> {
  await sql`update vulnerability_source
    set trackers_after = svc_now() + make_interval(secs => ${pauseSeconds})`.execute(db);
}

/** Failed requests in a row. */
export async function countFailures(db: Queryable): Promise<number> {
  const { rows } = await sql<{ failures: number }>`select failures from vulnerability_source`.execute(db);
  return rows[0]?.failures ?? 0;
}

/** A failed attempt; what was fetched before stays. */
export async function noteAttempt(trx: Queryable, product: string, error: string): Promise<void> {
  await sql`insert into vulnerability_products (product, attempted_at, error) values (${product}, svc_now(), ${error})
    on conflict (product) do update set attempted_at = svc_now(), error = excluded.error`.execute(trx);
}

/** What was fetched of a product. */
export interface FetchedProduct {
  advisories: readonly Advisory[];
  /** Records that are not deleted though they are not among the fetched: they could not be read this time. */
  unreadable: readonly string[];
}

/** Replaces the records of a product. */
export async function replaceAdvisories(
  trx: Queryable,
  product: string,
  { advisories, unreadable }: FetchedProduct,
): Promise<void> {
  // The product's row is the first that is locked, so a refresh and an import of files follow one another.
  await sql`insert into vulnerability_products as held (product, attempted_at, refreshed_at, unreadable, revision)
    values (${product}, svc_now(), svc_now(), ${unreadable.length}, 1)
    on conflict (product) do update set attempted_at = svc_now(), refreshed_at = svc_now(), error = null,
      unreadable = excluded.unreadable, revision = held.revision + 1`.execute(trx);
  const cves = advisories.map(({ cve }) => cve);
  await sql`delete from vulnerability_advisories
    where product = ${product} and cve <> all(${[...cves, ...unreadable]}::text[])`.execute(trx);
  await writeAdvisories(trx, product, advisories);
  await countDeferred(trx, product);
}

/** Adds records of feed files, made at this time, to what is stored; an older record never takes the place of a newer. */
export async function mergeAdvisories(
  trx: Queryable,
  product: string,
  advisories: readonly Advisory[],
  removed: readonly string[],
  madeAtMs: number,
): Promise<void> {
  await sql`insert into vulnerability_products as held (product, attempted_at, refreshed_at, revision)
    values (${product}, svc_now(), to_timestamp(${madeAtMs}::float8 / 1000), 1)
    on conflict (product) do update set attempted_at = svc_now(), error = null, revision = held.revision + 1,
      refreshed_at = greatest(held.refreshed_at, excluded.refreshed_at)`.execute(trx);
  await sql`delete from vulnerability_advisories
    where product = ${product} and cve = any(${[...removed]}::text[])`.execute(trx);
  await writeAdvisories(trx, product, advisories);
  await countDeferred(trx, product);
}

async function writeAdvisories(trx: Queryable, product: string, advisories: readonly Advisory[]) {
  await sql`insert into vulnerability_advisories as held (product, cve, advisory)
    select ${product}, one ->> 'cve', one from jsonb_array_elements(${JSON.stringify(advisories)}::jsonb) as one
    on conflict (product, cve) do update set advisory = excluded.advisory
    where (held.advisory ->> 'modifiedAt') <= (excluded.advisory ->> 'modifiedAt')`.execute(trx);
}

async function countDeferred(trx: Queryable, product: string): Promise<void> {
  await sql`update vulnerability_products p set deferred = (
      select count(*)::int from vulnerability_advisories a where a.product = p.product and a.advisory ->> 'status' = 'Deferred')
    where p.product = ${product}`.execute(trx);
}
