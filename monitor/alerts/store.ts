/** Episodes, mutes and the watch of the judging loop. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AlertKind, OpenEpisode, Subject } from './episode.ts';

/**
 * Records that judging runs, and returns for how long without a break. After a pause of more than a minute the time
 * starts again, because the pause was not observed.
 */
export async function noteWatch(trx: Queryable): Promise<{ nowMs: number; watchingSeconds: number }> {
  const { rows } = await sql<{ nowMs: number; watchingSeconds: number }>`
    insert into alert_watch as held (last_run_at, watching_since) values (svc_now(), svc_now())
    on conflict (is_only) do update set last_run_at = svc_now(),
      watching_since = case when held.last_run_at > svc_now() - interval '60 seconds' then held.watching_since else svc_now() end
    returning (extract(epoch from svc_now()) * 1000)::float8 as now_ms,
      extract(epoch from svc_now() - watching_since)::float8 as watching_seconds`.execute(trx);
  return rows[0]!;
}

export async function listOpen(trx: Queryable): Promise<OpenEpisode[]> {
  const { rows } = await sql<OpenEpisode>`
    select id, kind, subject_key, (extract(epoch from good_since) * 1000)::float8 as good_since_ms
    from alert_episodes where resolved_at is null`.execute(trx);
  return rows;
}

/** Ids of the open episodes of a kind, by the keys of their subjects. */
export async function findOpenBySubject(
  trx: Queryable,
  kind: AlertKind,
  keys: readonly string[],
): Promise<Map<string, number>> {
  const { rows } = await sql<{ key: string; id: number }>`
    select subject_key as key, id from alert_episodes
    where kind = ${kind} and subject_key = any(${[...keys]}::text[]) and resolved_at is null`.execute(trx);
  return new Map(rows.map(({ key, id }) => [key, id]));
}

/** The new episode's id; null when the subject already has an open one. */
export async function insertEpisode(trx: Queryable, subject: Subject): Promise<number | null> {
  const { rows } = await sql<{ id: number }>`
    insert into alert_episodes (site_id, kind, subject_key, subject_name, details)
    values (${subject.siteId}, ${subject.kind}, ${subject.key}, ${subject.name}, ${JSON.stringify(subject.details)}::jsonb)
    on conflict (kind, subject_key) where resolved_at is null do nothing returning id`.execute(trx);
  return rows[0]?.id ?? null;
}

/** Updates the measured values while the subject is bad. */
export async function updateDetails(trx: Queryable, id: number, details: Subject['details']): Promise<void> {
  const text = JSON.stringify(details);
  await sql`update alert_episodes set details = ${text}::jsonb
    where id = ${id} and details is distinct from ${text}::jsonb`.execute(trx);
}

export async function setGoodSince(trx: Queryable, id: number, isGood: boolean): Promise<void> {
  await sql`update alert_episodes set good_since = case when ${isGood} then svc_now() end
    where id = ${id}`.execute(trx);
}

export async function resolveEpisode(trx: Queryable, id: number, resolution: 'recovered' | 'removed') {
  await sql`update alert_episodes set resolved_at = svc_now(), resolution = ${resolution}
    where id = ${id} and resolved_at is null`.execute(trx);
}

export interface StoredEpisode extends OpenEpisode {
  /** Null: it concerns all sites. */
  siteId: number | null;
  subjectName: string;
  openedAtMs: number;
  resolvedAtMs: number | null;
  resolution: 'recovered' | 'removed' | null;
  details: Subject['details'];
  acknowledgedAtMs: number | null;
  acknowledgedBy: string | null;
  note: string | null;
  /** End of the mute. */
  mutedUntilMs: number | null;
}

const episodeColumns = sql`e.id, e.site_id, e.kind, e.subject_key, e.subject_name,
  (extract(epoch from e.opened_at) * 1000)::float8 as opened_at_ms,
  (extract(epoch from e.resolved_at) * 1000)::float8 as resolved_at_ms, e.resolution,
  (extract(epoch from e.good_since) * 1000)::float8 as good_since_ms, e.details,
  (extract(epoch from e.acknowledged_at) * 1000)::float8 as acknowledged_at_ms, e.acknowledged_by, e.note,
  (extract(epoch from m.until) * 1000)::float8 as muted_until_ms`;
const episodeTables = sql`alert_episodes e
  left join alert_mutes m on m.kind = e.kind and m.subject_key = e.subject_key and m.until > svc_now()`;

export async function findEpisode(db: Queryable, id: number): Promise<StoredEpisode | null> {
  const { rows } =
    await sql<StoredEpisode>`select ${episodeColumns} from ${episodeTables} where e.id = ${id}`.execute(db);
  return rows[0] ?? null;
}

export interface EpisodeFilter {
  /** With those that concern all sites; null: of every site. */
  siteId: number | null;
  isOpen: boolean;
  limit: number;
}

export async function listEpisodes(db: Queryable, filter: EpisodeFilter): Promise<StoredEpisode[]> {
  const { rows } = await sql<StoredEpisode>`
    select ${episodeColumns} from ${episodeTables}
    where (${filter.siteId}::bigint is null or e.site_id is null or e.site_id = ${filter.siteId}::bigint)
      and (e.resolved_at is null) = ${filter.isOpen}
    order by coalesce(e.resolved_at, e.opened_at) desc, e.id desc limit ${filter.limit}`.execute(db);
  return rows;
}

export async function acknowledge(db: Queryable, id: number, by: string, note: string): Promise<boolean> {
  const { rows } = await sql`
    update alert_episodes set acknowledged_at = svc_now(), acknowledged_by = ${by}, note = nullif(${note}, '')
    where id = ${id} and resolved_at is null returning 1`.execute(db);
  return rows.length === 1;
}

/** Mutes the subject of an episode for hours from now; 0 unmutes it. */
export async function mute(db: Queryable, id: number, by: string, hours: number): Promise<boolean> {
  const { rows } = await sql`
    insert into alert_mutes as held (kind, subject_key, until, muted_by)
    select kind, subject_key, svc_now() + make_interval(hours => ${hours}), ${by} from alert_episodes where id = ${id}
    on conflict (kind, subject_key) do update set until = excluded.until, muted_by = excluded.muted_by
    returning 1`.execute(db);
  return rows.length === 1;
}
