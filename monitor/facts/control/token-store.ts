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
    returning sensor_id, spool_id, sequence`.execute(trx);
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

// Notes of what is sent to an engine without a transaction: which uploads, and which of them together.
//
// A note is committed before anything is sent, and goes in the transaction that ends its upload. A process that holds an upload's
// claim (`claimTokens`) and finds a note of it knows that an earlier attempt wrote it, which may have sent all, some or nothing.

/** Uploads that are sent together. */
export interface SentBatch {
  /** Null: one upload that is sent by itself. */
  id: string | null;
  uploads: readonly FactUpload[];
}

const given = (uploads: readonly FactUpload[]) => sql`
  unnest(${uploads.map(({ origin }) => origin.sensorId)}::bigint[], ${uploads.map(({ token }) => token.spoolId)}::uuid[],
    ${uploads.map(({ token }) => token.sequence)}::bigint[])`;

/** The batch of each upload that was sent before, by `keyOfToken`. Read by the transaction that holds the claims. */
export async function findSent(
  trx: Queryable,
  uploads: readonly FactUpload[],
): Promise<Map<string, string | null>> {
  const { rows } = await sql<{ sensorId: number; spoolId: string; sequence: number; batchId: string | null }>`
    select s.sensor_id, s.spool_id, s.sequence, s.batch_id
    from sent_uploads s join ${given(uploads)} as g(sensor_id, spool_id, sequence) using (sensor_id, spool_id, sequence)`.execute(
    trx,
  );
  return new Map(rows.map((row) => [keyOfToken(row.sensorId, row), row.batchId]));
}

/** That another process has taken these uploads over meanwhile; PostgreSQL's code says that all of it may be tried again. */
class TakenOver extends Error {
  readonly code = '40001';
}

/**
 * Notes what is about to be sent, in a transaction of its own. Throws where another process has noted or ended one of these
 * uploads since they were claimed: the claim is lost then, with the transaction that holds it.
 */
export async function noteSent(db: Queryable, batches: readonly SentBatch[]): Promise<void> {
  const uploads = batches.flatMap((batch) => batch.uploads);
  if (uploads.length === 0) return;
  const ids = batches.flatMap((batch) => batch.uploads.map(() => batch.id));
  const { rows } = await sql`
    insert into sent_uploads (sensor_id, spool_id, sequence, batch_id)
    select sensor_id, spool_id, sequence, batch_id
    from unnest(${uploads.map(({ origin }) => origin.sensorId)}::bigint[], ${uploads.map(({ token }) => token.spoolId)}::uuid[],
      ${uploads.map(({ token }) => token.sequence)}::bigint[], ${ids}::uuid[]) as g(sensor_id, spool_id, sequence, batch_id)
    order by sensor_id, spool_id, sequence
    on conflict do nothing
    returning sequence`.execute(db);
  // After the notes: who ended an upload has removed its note before, and has committed both.
  const ended = await sql`
    select 1 from appended_uploads join ${given(uploads)} as g(sensor_id, spool_id, sequence)
      using (sensor_id, spool_id, sequence) limit 1`.execute(db);
  if (rows.length < uploads.length || ended.rows.length > 0)
    throw new TakenOver('Another process has applied these uploads.');
}

/** Removes the notes of uploads that end with this transaction. */
export async function forgetSent(trx: Queryable, uploads: readonly FactUpload[]): Promise<void> {
  await sql`
    delete from sent_uploads s using ${given(uploads)} as g(sensor_id, spool_id, sequence)
    where (s.sensor_id, s.spool_id, s.sequence) = (g.sensor_id, g.spool_id, g.sequence)`.execute(trx);
}
