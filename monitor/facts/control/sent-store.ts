/**
 * Notes of what is sent to an engine without a transaction: which uploads, and which of them together.
 *
 * A note is committed before anything is sent, and goes in the transaction that ends its upload. A process that holds an upload's
 * claim (`claimTokens`) and finds a note of it knows that an earlier attempt wrote it, which may have sent all, some or nothing.
 */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FactUpload } from '../contract/facts.ts';
import { keyOfToken } from './token-store.ts';

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
    select s.sensor_id as "sensorId", s.spool_id as "spoolId", s.sequence, s.batch_id as "batchId"
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
