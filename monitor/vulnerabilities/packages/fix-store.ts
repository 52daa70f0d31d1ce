/** What the trackers of distributions say, as it was read from their files. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Distribution } from './compare-revisions.ts';
import type { PackageFix } from './judge-package.ts';
import type { TrackerFile } from './read-trackers.ts';

/** Of all distributions, for packages of this product. */
export async function readFixes(db: Queryable, product: string): Promise<PackageFix[]> {
  const { rows } = await sql<PackageFix>`
    select distribution, release, package, cve, status, fixed_in, upstreams, newest
    from vulnerability_package_fixes where product = ${product}`.execute(db);
  return rows;
}

/**
 * Puts what a file says in the place of what was stored of the same, and has the software of its products compared again.
 */
export async function putFixes(trx: Queryable, { distribution, about, fixes }: TrackerFile): Promise<void> {
  const isOfFile =
    about === 'everything'
      ? sql`distribution = ${distribution}`
      : sql`distribution = ${distribution} and cve = any(${[...about]}::text[])`;
  const given = sql`jsonb_to_recordset(${JSON.stringify(fixes)}::jsonb) as g(product text, release text, package text,
    cve text, status text, "fixedIn" text, upstreams text[], newest text)`;
  await sql`
    with gone as (delete from vulnerability_package_fixes where ${isOfFile} returning product),
    made as (
      insert into vulnerability_package_fixes (product, distribution, release, package, cve, status, fixed_in, upstreams, newest)
      select distinct g.product, ${distribution}, g.release, g.package, g.cve, g.status, g."fixedIn", g.upstreams, g.newest from ${given}
      returning product)
    update vulnerability_products p set revision = revision + 1
    where p.product in (select product from gone union select product from made)`.execute(trx);
}

/** A distribution whose tracker was read. */
export interface StoredTracker {
  distribution: Distribution;
  fixes: number;
  importedAtMs: number;
}

export async function noteTrackers(trx: Queryable, read: readonly Distribution[]): Promise<void> {
  await sql`insert into vulnerability_trackers (distribution, imported_at)
    select distinct one, svc_now() from unnest(${[...read]}::text[]) as one
    on conflict (distribution) do update set imported_at = excluded.imported_at`.execute(trx);
}

export async function listTrackers(db: Queryable): Promise<StoredTracker[]> {
  const { rows } = await sql<StoredTracker>`
    select t.distribution, (extract(epoch from t.imported_at) * 1000)::float8 as imported_at_ms,
      (select count(*)::int from vulnerability_package_fixes f where f.distribution = t.distribution) as fixes
    from vulnerability_trackers t order by 1`.execute(db);
  return rows;
}
