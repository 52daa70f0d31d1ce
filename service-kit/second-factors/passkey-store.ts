import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A passkey as its owner sees it. */
export interface PasskeySummary {
  id: string;
  name: string;
  createdAt: Date;
  lastUsedAt: Date | null;
}

export interface Passkey {
  id: string;
  personId: number;
  publicKey: Buffer;
  signCount: number;
}

export async function listPasskeys(db: Queryable, personId: number): Promise<PasskeySummary[]> {
  const { rows } = await sql<PasskeySummary>`
    select credential_id as id, name, created_at, last_used_at
    from passkeys where person_id = ${personId} order by created_at, credential_id`.execute(db);
  return rows;
}

/** False when the passkey is known already. */
export async function insertPasskey(
  db: Queryable,
  passkey: Passkey & { name: string; transports: readonly string[] },
): Promise<boolean> {
  const { rows } = await sql`
    insert into passkeys (credential_id, person_id, public_key, sign_count, transports, name)
    values (${passkey.id}, ${passkey.personId}, ${passkey.publicKey}, ${passkey.signCount},
      ${[...passkey.transports]}::text[], ${passkey.name})
    on conflict (credential_id) do nothing returning 1`.execute(db);
  return rows.length === 1;
}

export async function findPasskey(db: Queryable, id: string): Promise<Passkey | null> {
  const { rows } = await sql<Passkey>`
    select credential_id as id, person_id, public_key, sign_count
    from passkeys where credential_id = ${id}`.execute(db);
  return rows[0] ?? null;
}

export async function noteUse(db: Queryable, id: string, signCount: number): Promise<void> {
  await sql`update passkeys set sign_count = ${signCount}, last_used_at = svc_now()
    where credential_id = ${id}`.execute(db);
}

export async function deletePasskey(db: Queryable, personId: number, id: string): Promise<boolean> {
  const { rows } = await sql`
    delete from passkeys where person_id = ${personId} and credential_id = ${id} returning 1`.execute(db);
  return rows.length === 1;
}

export async function insertChallenge(
  db: Queryable,
  challenge: string,
  personId: number | null,
): Promise<void> {
  await sql`delete from passkey_challenges where expires_at < svc_now()`.execute(db);
  await sql`insert into passkey_challenges (challenge, person_id, expires_at)
    values (${challenge}, ${personId}, svc_now() + interval '5 minutes')`.execute(db);
}

/** Uses a challenge up; false when there is none for this person. Of two at once, one gets it. */
export async function takeChallenge(
  db: Queryable,
  challenge: string,
  personId: number | null,
): Promise<boolean> {
  const { rows } = await sql`
    delete from passkey_challenges
    where challenge = ${challenge} and person_id is not distinct from ${personId} and expires_at > svc_now()
    returning 1`.execute(db);
  return rows.length === 1;
}
