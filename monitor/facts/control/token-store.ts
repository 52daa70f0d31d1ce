/** Tokens of uploads that were appended: an append of one that is known adds nothing. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FactUpload } from '../contract/facts.ts';

/**
 * Notes the uploads' tokens and returns the uploads that were not noted before. A token that another transaction has noted
 * and not committed is waited for. Tokens go in by their order, so that no two transactions wait for each other in a circle.
 */
export async function claimTokens(trx: Queryable, uploads: readonly FactUpload[]): Promise<FactUpload[]> {
  const { rows } = await sql<{ sensorId: number; spoolId: string; sequence: number }>`
    insert into appended_uploads (sensor_id, spool_id, sequence)
    select sensor_id, spool_id, sequence
    from unnest(${uploads.map(({ origin }) => origin.sensorId)}::bigint[],
      ${uploads.map(({ token }) => token.spoolId)}::uuid[], ${uploads.map(({ token }) => token.sequence)}::bigint[])
      as given (sensor_id, spool_id, sequence)
    order by sensor_id, spool_id, sequence
    on conflict do nothing
    returning sensor_id as "sensorId", spool_id as "spoolId", sequence`.execute(trx);
  const fresh = new Set(rows.map((row) => keyOfToken(row.sensorId, row)));
  // Of two with one token in a batch the first stands.
  return uploads.filter(({ origin, token }) => fresh.delete(keyOfToken(origin.sensorId, token)));
}

/** An upload by its token. */
export const keyOfToken = (sensorId: number, { spoolId, sequence }: FactUpload['token']) =>
  `${sensorId} ${spoolId.toLowerCase()} ${sequence}`;

/** Notes of appended uploads are kept for longer than this. */
const notedSeconds = 23 * 3600;

/** Which of these, by their place, are of uploads that were appended and committed; what is older than the notes counts as such. */
export async function findCommitted(
  trx: Queryable,
  stored: readonly { sensorId: number; spoolId: string; sequence: string; appendedAt: number }[],
): Promise<number[]> {
  const { rows } = await sql<{ index: number }>`
    select (n - 1)::int as index
    from unnest(${stored.map((one) => one.sensorId)}::bigint[], ${stored.map((one) => one.spoolId)}::uuid[],
      ${stored.map((one) => one.sequence)}::bigint[], ${stored.map((one) => one.appendedAt)}::float8[])
      with ordinality as s(sensor_id, spool_id, sequence, appended_at, n)
    left join appended_uploads a using (sensor_id, spool_id, sequence)
    where a.sensor_id is not null or to_timestamp(s.appended_at) < svc_now() - make_interval(secs => ${notedSeconds})`.execute(
    trx,
  );
  return rows.map(({ index }) => index);
}
