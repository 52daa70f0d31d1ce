/** Every statement on idempotency keys. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Result } from './index.ts';

interface Place {
  keyId: string;
  method: string;
  path: string;
  idempotencyKey: string;
}

export interface ClaimRow extends Place {
  term: number;
}

const at = (place: Place) => sql`key_id = ${place.keyId} and method = ${place.method} and path = ${place.path}
  and idempotency_key = ${place.idempotencyKey}`;

// One statement decides between any number of callers: the row is made, or taken over because it has expired, or
// because its caller died before it created anything and this is the same call again. No other call gets it.
export async function claim(
  db: Queryable,
  place: Place,
  fingerprint: Buffer,
  claimSeconds: number,
): Promise<number | null> {
  const { rows } = await sql<{ term: number }>`
    insert into idempotency_keys as kept (key_id, method, path, idempotency_key, fingerprint, claimed_until)
    values (${place.keyId}, ${place.method}, ${place.path}, ${place.idempotencyKey}, ${fingerprint},
      svc_now() + make_interval(secs => ${claimSeconds}))
    on conflict (key_id, method, path, idempotency_key) do update set
      term = kept.term + 1, fingerprint = excluded.fingerprint, claimed_until = excluded.claimed_until,
      result_kind = null, result_id = null, created_at = svc_now()
    where kept.created_at <= svc_now() - interval '24 hours'
      or (kept.result_id is null and kept.claimed_until <= svc_now() and kept.fingerprint = excluded.fingerprint)
    returning term`.execute(db);
  return rows[0]?.term ?? null;
}

export async function find(
  db: Queryable,
  place: Place,
): Promise<{ fingerprint: Buffer; result: Result | null } | null> {
  const { rows } = await sql<{ fingerprint: Buffer; kind: string | null; id: number | null }>`
    select fingerprint, result_kind as kind, result_id as id from idempotency_keys where ${at(place)}`.execute(
    db,
  );
  const row = rows[0];
  if (row === undefined) return null;
  const result = row.kind === null || row.id === null ? null : { kind: row.kind, id: row.id };
  return { fingerprint: row.fingerprint, result };
}

/** False when the claim was overtaken; the caller's transaction must then be undone. */
export async function bind(tx: Queryable, claimed: ClaimRow, result: Result): Promise<boolean> {
  const { rows } = await sql`
    update idempotency_keys set result_kind = ${result.kind}, result_id = ${result.id}
    where ${at(claimed)} and term = ${claimed.term} returning 1`.execute(tx);
  return rows.length === 1;
}

export async function release(db: Queryable, claimed: ClaimRow): Promise<void> {
  await sql`delete from idempotency_keys
    where ${at(claimed)} and term = ${claimed.term} and result_id is null`.execute(db);
}

export async function deleteExpired(db: Queryable): Promise<void> {
  await sql`delete from idempotency_keys where created_at <= svc_now() - interval '24 hours'`.execute(db);
}
