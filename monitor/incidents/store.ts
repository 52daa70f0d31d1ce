/** Observations, and the incidents that they make. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { reopenMs } from './correlate.ts';
import type { Incident, Observation, Transition } from './incident.ts';
import type { Ownership, Statement } from './judge-ownership.ts';
import { type IncidentRow, incidentColumns, toIncident } from './read-store.ts';

const at = (column: string) => sql`to_timestamp(${sql.ref(column)} / 1000)`;

/** Only one transaction at a time changes the incidents of a site. In ascending order of their ids. */
export async function lockSites(trx: Queryable, siteIds: readonly number[]): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318206, id::int) from (
    select unnest(${[...siteIds]}::bigint[]) as id order by 1) s`.execute(trx);
}

/** A statement with its verdict, to be stored. */
export type Judged = Statement & Ownership;

/** The row of an observation, and the incident that it is of. */
export interface StoredRow {
  index: number;
  id: number;
  /** True when this revision is the highest by now. */
  isNewest: boolean;
}

/**
 * Stores statements, of each observation the highest revision; a lower one than held changes nothing. Statements about one
 * observation must not occur twice. Returns their rows by the index in the list.
 */
export async function upsertObservations(trx: Queryable, judged: readonly Judged[]): Promise<StoredRow[]> {
  const given = judged.map(({ siteId, sensorId, said, isForeign, key }, index) => ({
    ...{ index, siteId, sensorId, isForeign, said, id: said.id, revision: said.revision },
    ...{
      kind: key.target.kind,
      target: key.target.value,
      targetKey: key.targetKey,
      direction: key.direction,
    },
    ...{ severity: key.severity, isDrill: key.isDrill, startedAt: said.startedAtMs },
    endsAt: Math.max(said.lastObservedAtMs, said.recoveredAtMs ?? 0),
  }));
  const { rows } = await sql<StoredRow>`
    with given as (
      select * from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(index int, "siteId" bigint, "sensorId" bigint,
        "isForeign" boolean, said jsonb, id uuid, revision int, kind text, target text, "targetKey" text, direction text,
        severity text, "isDrill" boolean, "startedAt" float8, "endsAt" float8)),
    written as (
      insert into incident_observations as held (sensor_id, observation_id, is_foreign, site_id, revision, target_kind,
        target, target_key, direction, severity, is_drill, started_at, ends_at, said)
      select "sensorId", id, "isForeign", "siteId", revision, kind, target, "targetKey", direction, severity, "isDrill",
        ${at('startedAt')}, ${at('endsAt')}, said
      from given order by "sensorId", id, "isForeign"
      on conflict (sensor_id, observation_id, is_foreign) do update set
        revision = excluded.revision, target_kind = excluded.target_kind, target = excluded.target,
        target_key = excluded.target_key, direction = excluded.direction, severity = excluded.severity,
        is_drill = excluded.is_drill, started_at = excluded.started_at, ends_at = excluded.ends_at, said = excluded.said,
        received_at = svc_now()
      where excluded.revision > held.revision
      returning id, sensor_id, observation_id, is_foreign)
    select g.index, coalesce(w.id, o.id) as id, w.id is not null as is_newest
    from given g
    left join written w on w.sensor_id = g."sensorId" and w.observation_id = g.id and w.is_foreign = g."isForeign"
    left join incident_observations o on o.sensor_id = g."sensorId" and o.observation_id = g.id
      and o.is_foreign = g."isForeign"`.execute(trx);
  return rows;
}

/** Rows that these statements will replace. */
export async function listRowsOf(
  trx: Queryable,
  judged: readonly (Statement & { isForeign: boolean })[],
): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select o.id from incident_observations o
    join unnest(${judged.map(({ sensorId }) => sensorId)}::bigint[], ${judged.map(({ said }) => said.id)}::uuid[],
      ${judged.map(({ isForeign }) => isForeign)}::boolean[]) as g(sensor_id, observation_id, is_foreign)
      using (sensor_id, observation_id, is_foreign)`.execute(trx);
  return rows.map(({ id }) => id);
}

/** Seconds of one revision of an observation, and its heaviest remote prefixes. */
export interface Detail {
  row: number;
  revision: number;
  at: number[];
  bps: number[];
  pps: number[];
  remotes: readonly { prefix: string; share: number }[];
  observedAtMs: number;
}

/** Remote prefixes of one observation: a flood from everywhere has new ones in every revision. */
const remotesMax = 256;

export async function insertDetails(trx: Queryable, details: readonly Detail[]): Promise<void> {
  await sql`
    insert into incident_seconds (observation, revision, at, bps, pps)
    select row, revision, array(select jsonb_array_elements_text(at)::bigint),
      array(select jsonb_array_elements_text(bps)::bigint), array(select jsonb_array_elements_text(pps)::bigint)
    from jsonb_to_recordset(${JSON.stringify(details.filter((one) => one.at.length > 0))}::jsonb)
      as g(row bigint, revision int, at jsonb, bps jsonb, pps jsonb)
    on conflict do nothing`.execute(trx);
  const remotes = new Map<string, { row: number; prefix: string; share: number; from: number; to: number }>();
  for (const { row, observedAtMs, remotes: ofDetail } of details)
    for (const { prefix, share } of ofDetail) {
      const held = remotes.get(`${row} ${prefix}`);
      remotes.set(`${row} ${prefix}`, {
        ...{ row, prefix, share: Math.max(share, held?.share ?? 0) },
        from: Math.min(observedAtMs, held?.from ?? observedAtMs),
        to: Math.max(observedAtMs, held?.to ?? observedAtMs),
      });
    }
  await sql`
    with given as (
      select g.*, row_number() over (partition by g.row order by share desc, prefix) as place
      from jsonb_to_recordset(${JSON.stringify([...remotes.values()])}::jsonb)
        as g(row bigint, prefix text, share float8, "from" float8, "to" float8)),
    held as materialized (
      select observation, count(*) as count from incident_remotes
      where observation in (select distinct row from given) group by observation)
    insert into incident_remotes as r (observation, prefix, share, first_at, last_at)
    select g.row, g.prefix, g.share, ${at('from')}, ${at('to')} from given g
    left join held h on h.observation = g.row
    where g.place + coalesce(h.count, 0) <= ${remotesMax}
      or exists (select 1 from incident_remotes k where k.observation = g.row and k.prefix = g.prefix)
    on conflict (observation, prefix) do update set share = greatest(r.share, excluded.share),
      first_at = least(r.first_at, excluded.first_at), last_at = greatest(r.last_at, excluded.last_at)`.execute(
    trx,
  );
}

const observationColumns = sql`o.id as row_id, o.sensor_id, o.site_id, o.incident_id, o.target_key, o.direction,
  o.severity, o.is_drill, o.said, o.target_kind,
  o.target as target_value`;

type ObservationRow = Omit<Observation, 'target'> & {
  targetKind: Observation['target']['kind'];
  targetValue: string;
};

function toObservation({ targetKind, targetValue, ...row }: ObservationRow): Observation {
  return { ...row, target: { kind: targetKind, value: targetValue } };
}

/**
 * Own observations that may be of one incident with these rows: the rows, everything in their incidents, and everything in
 * incidents of their keys that ended shortly before or began shortly after.
 */
export async function listRelated(trx: Queryable, rowIds: readonly number[]): Promise<Observation[]> {
  const { rows } = await sql<ObservationRow>`
    with touched as (select * from incident_observations where id = any(${[...rowIds]}::bigint[])),
    near as (
      select incident_id from touched where incident_id is not null
      union
      select o.incident_id from touched t join incident_observations o on o.site_id = t.site_id
        and o.target_key = t.target_key and o.direction = t.direction and o.severity = t.severity
        and o.is_drill = t.is_drill and not o.is_foreign and o.incident_id is not null
        and o.ends_at >= t.started_at - make_interval(secs => ${reopenMs / 1000})
        and o.started_at <= t.ends_at + make_interval(secs => ${reopenMs / 1000})),
    related as (
      select m.id from near join incident_observations m on m.incident_id = near.incident_id
      union select id from touched)
    select ${observationColumns} from related r join incident_observations o on o.id = r.id
    where not o.is_foreign`.execute(trx);
  return rows.map(toObservation);
}

/** The incident that each of these rows was of. */
export async function listIncidentsOf(trx: Queryable, rowIds: readonly number[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from incidents where id in (
      select incident_id from incident_observations where id = any(${[...rowIds]}::bigint[]))`.execute(trx);
  return rows.map(({ id }) => id);
}

/** These incidents and those that were merged into them, the oldest first. */
export async function listIncidents(trx: Queryable, ids: readonly string[]): Promise<Incident[]> {
  const { rows } = await sql<IncidentRow>`
    select ${incidentColumns} from incidents i
    where i.id = any(${[...ids]}::uuid[]) or i.merged_into = any(${[...ids]}::uuid[])
    order by i.created_at, i.id`.execute(trx);
  return rows.map(toIncident);
}

/** Writes incidents; their correlations are assigned afterwards. */
export async function writeIncidents(trx: Queryable, incidents: readonly Incident[]): Promise<void> {
  const given = incidents.map(({ target, ...rest }) => ({
    ...rest,
    kind: target.kind,
    target: target.value,
  }));
  await sql`
    insert into incidents as i (id, site_id, target_kind, target, target_key, direction, severity, class, is_drill, revision,
      state, started_at, detected_at, last_observed_at, recovered_at, measured, merged_into, is_withdrawn)
    select id, "siteId", kind, target, "targetKey", direction, severity, class, "isDrill", revision, state,
      ${at('startedAtMs')}, ${at('detectedAtMs')}, ${at('lastObservedAtMs')}, ${at('recoveredAtMs')}, measured,
      "mergedInto", "isWithdrawn"
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(id uuid, "siteId" bigint, kind text, target text,
      "targetKey" text, direction text, severity text, class text, "isDrill" boolean, revision int, state text,
      "startedAtMs" float8, "detectedAtMs" float8, "lastObservedAtMs" float8, "recoveredAtMs" float8, measured jsonb,
      "mergedInto" uuid, "isWithdrawn" boolean)
    order by "mergedInto" nulls first, id
    on conflict (id) do update set class = excluded.class, revision = excluded.revision, state = excluded.state,
      started_at = excluded.started_at, detected_at = excluded.detected_at, last_observed_at = excluded.last_observed_at,
      recovered_at = excluded.recovered_at, measured = excluded.measured, merged_into = excluded.merged_into, is_withdrawn = excluded.is_withdrawn, changed_at = svc_now(),
      correlation_id = case when excluded.merged_into is null
        and not excluded.is_withdrawn then i.correlation_id end`.execute(trx);
}

/** Which incident each observation is of. */
export async function assignObservations(
  trx: Queryable,
  assigned: readonly { rowId: number; incidentId: string }[],
): Promise<void> {
  await sql`update incident_observations o set incident_id = g."incidentId"
    from jsonb_to_recordset(${JSON.stringify(assigned)}::jsonb) as g("rowId" bigint, "incidentId" uuid)
    where o.id = g."rowId" and o.incident_id is distinct from g."incidentId"`.execute(trx);
}

export async function insertTransitions(
  trx: Queryable,
  transitions: readonly (Transition & { incidentId: string })[],
): Promise<void> {
  await sql`insert into incident_transitions (incident_id, kind, at, details)
    select "incidentId", kind, ${at('atMs')}, details
    from jsonb_to_recordset(${JSON.stringify(transitions)}::jsonb)
      as g("incidentId" uuid, kind text, "atMs" float8, details jsonb)`.execute(trx);
}

/** Rows of observations of hosts whose address is one of these and that ended at or after its time (unix seconds). */
export async function listRowsOfAddresses(
  trx: Queryable,
  changed: readonly { address: string; since: number }[],
): Promise<(Statement & { rowId: number; isForeign: boolean; targetKey: string })[]> {
  const since = changed.map((one) => (Number.isFinite(one.since) ? one.since : 0));
  const { rows } = await sql<Statement & { rowId: number; isForeign: boolean; targetKey: string }>`
    select o.id as row_id, o.site_id, o.sensor_id, o.is_foreign, o.target_key, o.said
    from unnest(${changed.map(({ address }) => address)}::text[], ${since}::float8[]) as g(address, since)
    join incident_observations o on o.said #>> '{target,value}' = g.address
      and o.ends_at >= greatest(to_timestamp(g.since), svc_now() - interval '24 hours') - interval '2 minutes'
    where o.said #>> '{target,kind}' = 'host' order by o.id`.execute(trx);
  return rows;
}

/** Another verdict on rows; of one observation at most one row may have each verdict. */
export async function changeVerdicts(trx: Queryable, changed: readonly (Ownership & { rowId: number })[]) {
  const given = changed.map(({ rowId, isForeign, key }) => ({
    ...{ rowId, isForeign, kind: key.target.kind, target: key.target.value, targetKey: key.targetKey },
  }));
  await sql`update incident_observations o set is_foreign = g."isForeign", target_kind = g.kind, target = g.target,
      target_key = g."targetKey", incident_id = case when g."isForeign" then null else o.incident_id end
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb)
      as g("rowId" bigint, "isForeign" boolean, kind text, target text, "targetKey" text)
    where o.id = g."rowId"`.execute(trx);
}

export async function deleteObservations(trx: Queryable, rowIds: readonly number[]): Promise<void> {
  await sql`delete from incident_observations where id = any(${[...rowIds]}::bigint[])`.execute(trx);
}

/** Active incidents that were last observed before this moment. */
export async function listFading(
  trx: Queryable,
  beforeMs: number,
  limit: number,
): Promise<{ id: string; siteId: number }[]> {
  const { rows } = await sql<{ id: string; siteId: number }>`
    select id, site_id from incidents
    where state <> 'recovered' and state = 'active' and merged_into is null and last_observed_at < to_timestamp(${beforeMs}::float8 / 1000)
    order by last_observed_at limit ${limit}`.execute(trx);
  return rows;
}

/** A row of each of these incidents, so that all of it is judged again. */
export async function listRowsOfIncidents(trx: Queryable, ids: readonly string[]): Promise<number[]> {
  const { rows } = await sql<{ rowId: number }>`
    select min(id) as row_id from incident_observations
    where incident_id = any(${[...ids]}::uuid[]) group by incident_id`.execute(trx);
  return rows.map(({ rowId }) => rowId);
}
