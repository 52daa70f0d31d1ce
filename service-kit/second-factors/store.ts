import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from '#service-kit/secrets/index.ts';

/** The secret that an authenticator app shares. */
export const totpSecret: SecretColumn = {
  table: 'totp_secrets',
  key: 'person_id',
  sealed: 'sealed_secret',
  clear: 'clear_secret',
};

export interface FactorCounts {
  hasTotp: boolean;
  passkeys: number;
  recoveryCodesLeft: number;
}

export async function countFactors(db: Queryable, personId: number): Promise<FactorCounts> {
  const { rows } = await sql<FactorCounts>`
    select exists (select 1 from totp_secrets where person_id = ${personId} and confirmed_at is not null) as has_totp,
      (select count(*)::int from passkeys where person_id = ${personId}) as passkeys,
      (select count(*)::int from recovery_codes
      where person_id = ${personId}) as recovery_codes_left`.execute(db);
  return rows[0]!;
}

/** Replaces a secret that was never confirmed; false when a confirmed one is there. */
export async function insertTotp(db: Queryable, personId: number, sealed: Buffer): Promise<boolean> {
  const { rows } = await sql`
    insert into totp_secrets (person_id, sealed_secret) values (${personId}, ${sealed})
    on conflict (person_id) do update set sealed_secret = excluded.sealed_secret, clear_secret = null, created_at = svc_now(), last_step = 0
      where totp_secrets.confirmed_at is null
    returning 1`.execute(db);
  return rows.length === 1;
}

export interface StoredTotp {
  sealed: Buffer | null;
  isConfirmed: boolean;
  /** The 30-second step of the last code that was accepted. */
  lastStep: number;
}

export async function findTotp(db: Queryable, personId: number): Promise<StoredTotp | null> {
  const { rows } = await sql<StoredTotp>`
    select sealed_secret as sealed, confirmed_at is not null as is_confirmed, last_step
    from totp_secrets where person_id = ${personId}`.execute(db);
  return rows[0] ?? null;
}

/** As `findTotp`, with the row locked until the transaction ends: of two that use a code, one finds it used. */
export async function lockTotp(trx: Queryable, personId: number): Promise<StoredTotp | null> {
  await sql`select 1 from totp_secrets where person_id = ${personId} for no key update`.execute(trx);
  return findTotp(trx, personId);
}

/** Uses a step up; it and older ones are not accepted again. */
export async function writeTotpStep(trx: Queryable, personId: number, step: number): Promise<void> {
  await sql`
    update totp_secrets set last_step = ${step}, confirmed_at = coalesce(confirmed_at, svc_now())
    where person_id = ${personId}`.execute(trx);
}

export async function deleteTotp(db: Queryable, personId: number): Promise<boolean> {
  const { rows } = await sql`delete from totp_secrets where person_id = ${personId} returning 1`.execute(db);
  return rows.length === 1;
}

export async function replaceRecoveryCodes(
  tx: Queryable,
  personId: number,
  digests: readonly Buffer[],
): Promise<void> {
  await sql`delete from recovery_codes where person_id = ${personId}`.execute(tx);
  if (digests.length === 0) return;
  await sql`insert into recovery_codes (digest, person_id)
    select digest, ${personId} from unnest(${[...digests]}::bytea[]) as digest`.execute(tx);
}

/** False when the person has no such code. Of two at once, one gets it. */
export async function takeRecoveryCode(db: Queryable, personId: number, digest: Buffer): Promise<boolean> {
  const { rows } = await sql`
    delete from recovery_codes where person_id = ${personId} and digest = ${digest} returning 1`.execute(db);
  return rows.length === 1;
}

export async function deletePasskeys(tx: Queryable, personId: number): Promise<void> {
  await sql`delete from passkeys where person_id = ${personId}`.execute(tx);
}

export async function insertStep(db: Queryable, digest: Buffer, personId: number): Promise<void> {
  await sql`delete from sign_in_steps where expires_at < svc_now()`.execute(db);
  await sql`insert into sign_in_steps (digest, person_id, expires_at)
    values (${digest}, ${personId}, svc_now() + interval '10 minutes')`.execute(db);
}

export async function findStep(db: Queryable, digest: Buffer): Promise<number | null> {
  const { rows } = await sql<{ personId: number }>`
    select person_id from sign_in_steps
    where digest = ${digest} and expires_at > svc_now()`.execute(db);
  return rows[0]?.personId ?? null;
}

export async function deleteStep(db: Queryable, digest: Buffer): Promise<void> {
  await sql`delete from sign_in_steps where digest = ${digest}`.execute(db);
}

export async function deleteSteps(db: Queryable, personId: number): Promise<void> {
  await sql`delete from sign_in_steps where person_id = ${personId}`.execute(db);
}
