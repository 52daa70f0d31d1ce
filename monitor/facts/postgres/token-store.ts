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
  const fresh = new Set(rows.map((row) => keyOf(row.sensorId, row)));
  // Of two with one token in a batch the first stands.
  return uploads.filter(({ origin, token }) => fresh.delete(keyOf(origin.sensorId, token)));
}

const keyOf = (sensorId: number, { spoolId, sequence }: FactUpload['token']) =>
  `${sensorId} ${spoolId.toLowerCase()} ${sequence}`;
