/** Every statement on the key, the other program, linked accounts, and assertions that were used. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from '#service-kit/secrets/index.ts';

/** The one row of key and peer. */
export const onlyRow = 1;
export const signingKey: SecretColumn = {
  table: 'sign_on_keys',
  key: 'id',
  sealed: 'sealed_key',
  clear: 'clear_key',
};

export interface StoredKey {
  /** As people copy it. */
  publicKey: string;
  sealedKey: Buffer | null;
  createdAt: Date;
}

export async function readKey(db: Queryable): Promise<StoredKey | null> {
  const { rows } = await sql<StoredKey>`
    select public_key, sealed_key, created_at
    from sign_on_keys`.execute(db);
  return rows[0] ?? null;
}

export async function writeKey(trx: Queryable, publicKey: string, sealed: Buffer): Promise<void> {
  await sql`
    insert into sign_on_keys (public_key, sealed_key) values (${publicKey}, ${sealed})
    on conflict (id) do update set public_key = excluded.public_key, sealed_key = excluded.sealed_key, clear_key = null,
      created_at = svc_now()`.execute(trx);
}

export interface Peer {
  /** Where browsers reach it, without a trailing slash. */
  address: string;
  /** As people copy it. */
  publicKey: string;
  /** Its operators may be signed in here. */
  isAccepted: boolean;
  /** Our operators may be signed in there, and pages link to it. */
  isOffered: boolean;
}

export async function readPeer(db: Queryable): Promise<Peer | null> {
  const { rows } = await sql<Peer>`
    select address, public_key, is_accepted, is_offered
    from sign_on_peers`.execute(db);
  return rows[0] ?? null;
}

/** Serializes changes of the peer and of linked accounts until the transaction ends. */
export async function lockPeer(trx: Queryable): Promise<void> {
  await sql`lock table sign_on_peers, sign_on_accounts in share row exclusive mode`.execute(trx);
}

export async function writePeer(trx: Queryable, peer: Peer): Promise<void> {
  await sql`
    insert into sign_on_peers (address, public_key, is_accepted, is_offered)
    values (${peer.address}, ${peer.publicKey}, ${peer.isAccepted}, ${peer.isOffered})
    on conflict (id) do update set address = excluded.address, public_key = excluded.public_key,
      is_accepted = excluded.is_accepted, is_offered = excluded.is_offered, updated_at = svc_now()`.execute(
    trx,
  );
}

/** Another key is another program: its operators' ids mean other people, and its assertions nothing. */
export async function forgetPeerAccounts(trx: Queryable): Promise<number> {
  await sql`update sign_on_answers set ticket = null where ticket is not null`.execute(trx);
  const { numAffectedRows = 0n } = await sql`delete from sign_on_accounts`.execute(trx);
  return Number(numAffectedRows);
}

export interface LinkedAccount {
  /** The operator's id in the other program. */
  subjectId: number;
  subjectEmail: string | null;
  personId: number;
  linkedAt: Date;
  lastUsedAt: Date | null;
}

const accountColumns = sql`
  subject_id, subject_email, person_id, linked_at,
  last_used_at`;

export async function listAccounts(db: Queryable): Promise<LinkedAccount[]> {
  const { rows } = await sql<LinkedAccount>`
    select ${accountColumns} from sign_on_accounts order by subject_id`.execute(db);
  return rows;
}

export async function findAccount(db: Queryable, subjectId: number): Promise<LinkedAccount | null> {
  const { rows } = await sql<LinkedAccount>`
    select ${accountColumns} from sign_on_accounts where subject_id = ${subjectId}`.execute(db);
  return rows[0] ?? null;
}

/** False when one of the two is linked already. */
export async function insertAccount(
  trx: Queryable,
  account: { subjectId: number; subjectEmail: string | null; personId: number },
): Promise<boolean> {
  const { rows } = await sql`
    insert into sign_on_accounts (subject_id, subject_email, person_id)
    values (${account.subjectId}, ${account.subjectEmail}, ${account.personId})
    on conflict do nothing returning 1`.execute(trx);
  return rows.length === 1;
}

/** The account that was linked; null when there is none. */
export async function deleteAccount(trx: Queryable, subjectId: number): Promise<LinkedAccount | null> {
  const { rows } = await sql<LinkedAccount>`
    delete from sign_on_accounts where subject_id = ${subjectId} returning ${accountColumns}`.execute(trx);
  return rows[0] ?? null;
}

export async function noteUse(db: Queryable, subjectId: number, subjectEmail: string): Promise<void> {
  await sql`update sign_on_accounts set last_used_at = svc_now(), subject_email = ${subjectEmail}
    where subject_id = ${subjectId}`.execute(db);
}

export interface NewAnswer {
  nonce: Buffer;
  ticket: Buffer;
  state: string;
  path: string;
  subjectId: number;
  subjectEmail: string;
  authenticatedAtMs: number;
  hasSecondFactor: boolean;
  keptSeconds: number;
}

/** False when the nonce was used before: of two at once, on any replica, one is written. */
export async function insertAnswer(db: Queryable, answer: NewAnswer): Promise<boolean> {
  await sql`delete from sign_on_answers where kept_until < svc_now()`.execute(db);
  const { rows } = await sql`
    insert into sign_on_answers (nonce, ticket, state, path, subject_id, subject_email, authenticated_at,
      has_second_factor, kept_until)
    values (${answer.nonce}, ${answer.ticket}, ${answer.state}, ${answer.path}, ${answer.subjectId},
      ${answer.subjectEmail}, to_timestamp(${answer.authenticatedAtMs / 1000}), ${answer.hasSecondFactor},
      svc_now() + make_interval(secs => ${answer.keptSeconds}))
    on conflict (nonce) do nothing returning 1`.execute(db);
  return rows.length === 1;
}

export type Answer = Omit<NewAnswer, 'ticket' | 'keptSeconds'>;

const answerColumns = sql`
  nonce, state, path, subject_id, subject_email,
  (extract(epoch from authenticated_at) * 1000)::float8 as authenticated_at_ms, has_second_factor`;

/** The accepted assertion of a ticket, until it is used or `minutes` have passed. */
export async function findAnswer(db: Queryable, ticket: Buffer, minutes: number): Promise<Answer | null> {
  const { rows } = await sql<Answer>`
    select ${answerColumns} from sign_on_answers
    where ticket = ${ticket} and arrived_at > svc_now() - make_interval(mins => ${minutes})`.execute(db);
  return rows[0] ?? null;
}

/** Uses a ticket up; false when it was used before. The nonce stays, so that the assertion is not accepted again. */
export async function takeAnswer(db: Queryable, ticket: Buffer): Promise<boolean> {
  const { rows } = await sql`
    update sign_on_answers set ticket = null where ticket = ${ticket} returning 1`.execute(db);
  return rows.length === 1;
}
