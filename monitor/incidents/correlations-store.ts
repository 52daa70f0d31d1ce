/** Correlations, and the incidents that may be of one. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Incidents of a site that began together. */
export interface Correlation {
  id: string;
  siteId: number;
  classes: string[];
  firstStartedAtMs: number;
  lastStartedAtMs: number;
  lastObservedAtMs: number;
}

/** An attack as correlations see it. */
export interface Peer {
  id: string;
  siteId: number;
  startedAtMs: number;
  lastObservedAtMs: number;
  /** Its class and those of its vectors. */
  classes: string[];
  correlationId: string | null;
}

const ms = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

/** These attacks, those of their sites that began within `reachMs` of them, and all of the correlations of both. */
export async function listPeers(
  trx: Queryable,
  incidentIds: readonly string[],
  reachMs: number,
): Promise<Peer[]> {
  const { rows } = await sql<Peer>`
    with reach as (
      select site_id, min(started_at) - make_interval(secs => ${reachMs / 1000}) as first,
        max(started_at) + make_interval(secs => ${reachMs / 1000}) as last
      from incidents where id = any(${[...incidentIds]}::uuid[]) group by site_id),
    near as (
      select n.id, n.correlation_id from reach g
      join incidents n on n.site_id = g.site_id and n.started_at between g.first and g.last),
    peers as (
      select id from near
      union select n.id from (select distinct correlation_id from near) c
        join incidents n on n.correlation_id = c.correlation_id)
    select i.id, i.site_id, ${ms('i.started_at')} as started_at_ms,
      ${ms('i.last_observed_at')} as last_observed_at_ms, i.correlation_id,
      array(select distinct name from (
        select i.class as name union all
        select vector ->> 'class' from jsonb_array_elements(i.measured -> 'vectors') vector) names order by name) as classes
    from peers p join incidents i on i.id = p.id
    where i.severity = 'attack' and not i.is_drill and i.merged_into is null
      and not i.is_withdrawn`.execute(trx);
  return rows;
}

export async function writeCorrelations(trx: Queryable, correlations: readonly Correlation[]): Promise<void> {
  await sql`
    insert into site_correlations (id, site_id, classes, first_started_at, last_started_at, last_observed_at)
    select id, "siteId", array(select jsonb_array_elements_text(classes)), to_timestamp("firstStartedAtMs" / 1000),
      to_timestamp("lastStartedAtMs" / 1000), to_timestamp("lastObservedAtMs" / 1000)
    from jsonb_to_recordset(${JSON.stringify(correlations)}::jsonb) as g(id uuid, "siteId" bigint, classes jsonb,
      "firstStartedAtMs" float8, "lastStartedAtMs" float8, "lastObservedAtMs" float8)
    on conflict (id) do update set classes = excluded.classes, first_started_at = excluded.first_started_at,
      last_started_at = excluded.last_started_at, last_observed_at = excluded.last_observed_at`.execute(trx);
}

/** Which correlation each incident is of; null: none any more. */
export async function assignCorrelations(
  trx: Queryable,
  assigned: readonly { id: string; correlationId: string | null }[],
): Promise<void> {
  await sql`update incidents i set correlation_id = g."correlationId"
    from jsonb_to_recordset(${JSON.stringify(assigned)}::jsonb) as g(id uuid, "correlationId" uuid)
    where i.id = g.id`.execute(trx);
}

export async function deleteEmptyCorrelations(trx: Queryable, ids: readonly string[]): Promise<void> {
  await sql`delete from site_correlations c where c.id = any(${[...ids]}::uuid[])
    and not exists (select 1 from incidents i where i.correlation_id = c.id)`.execute(trx);
}
