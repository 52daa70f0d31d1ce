import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** An account at the provider, and who it is here. */
export interface Identity {
  id: number;
  personId: number;
  email: string;
  isManaged: boolean;
}

/** Why a browser was sent to the provider: to sign in, to confirm who a session's person is, or to link an account. */
export type Purpose = 'sign_in' | 'confirm' | 'link';

export interface OidcRequest {
  purpose: Purpose;
  next: string;
  personId: number | null;
  /** What the provider answered, of a link that is still to be confirmed. */
  subject: string | null;
  email: string | null;
}

export async function insertRequest(
  db: Queryable,
  request: Omit<OidcRequest, 'subject' | 'email'> & {
    state: Buffer;
    browser: Buffer;
    subject?: string;
    email?: string;
  },
  keptMinutes: number,
): Promise<void> {
  const { state, browser, purpose, next, personId, subject = null, email = null } = request;
  await sql`delete from oidc_requests
    where begun_at < svc_now() - make_interval(mins => ${keptMinutes})`.execute(db);
  await sql`
    insert into oidc_requests (state, browser, purpose, next, person_id, subject, email)
    values (${state}, ${browser}, ${purpose}, ${next}, ${personId}, ${subject}, ${email})`.execute(db);
}

/** Uses up what this browser began; null for what it did not begin, has used, or began too long ago. */
export async function takeRequest(
  db: Queryable,
  state: Buffer,
  browser: Buffer,
  keptMinutes: number,
): Promise<OidcRequest | null> {
  const { rows } = await sql<OidcRequest>`
    delete from oidc_requests where state = ${state} and browser = ${browser}
      and begun_at > svc_now() - make_interval(mins => ${keptMinutes})
    returning purpose, next, person_id, subject, email`.execute(db);
  return rows[0] ?? null;
}

/** A link that waits for its person's word. */
export async function findRequest(
  db: Queryable,
  state: Buffer,
  browser: Buffer,
  keptMinutes: number,
): Promise<OidcRequest | null> {
  const { rows } = await sql<OidcRequest>`
    select purpose, next, person_id, subject, email from oidc_requests
    where state = ${state} and browser = ${browser}
      and begun_at > svc_now() - make_interval(mins => ${keptMinutes})`.execute(db);
  return rows[0] ?? null;
}

const identityColumns = sql`id, person_id, email, is_managed`;

/** Who this is here; the address is noted as the provider names it now. */
export async function useIdentity(
  db: Queryable,
  issuer: string,
  { subject, email }: { subject: string; email: string },
): Promise<Identity | null> {
  const { rows } = await sql<Identity>`
    update oidc_identities set last_used_at = svc_now(), email = ${email}
    where issuer = ${issuer} and subject = ${subject} returning ${identityColumns}`.execute(db);
  return rows[0] ?? null;
}

export async function findIdentityOf(
  db: Queryable,
  issuer: string,
  personId: number,
): Promise<Identity | null> {
  const { rows } = await sql<Identity>`
    select ${identityColumns} from oidc_identities
    where issuer = ${issuer} and person_id = ${personId}`.execute(db);
  return rows[0] ?? null;
}

/** Null where the account or the person has a link already. */
export async function insertIdentity(
  db: Queryable,
  issuer: string,
  identity: { subject: string; email: string; personId: number; isManaged: boolean },
): Promise<Identity | null> {
  const { subject, email, personId, isManaged } = identity;
  const { rows } = await sql<Identity>`
    insert into oidc_identities (issuer, subject, email, person_id, is_managed)
    values (${issuer}, ${subject}, ${email}, ${personId}, ${isManaged})
    on conflict do nothing returning ${identityColumns}`.execute(db);
  return rows[0] ?? null;
}

/** Its sessions end with it. False where there was none that may be removed. */
export async function deleteIdentityOf(db: Queryable, issuer: string, personId: number): Promise<boolean> {
  const { rows } = await sql`
    delete from oidc_identities where issuer = ${issuer} and person_id = ${personId} and not is_managed
    returning 1`.execute(db);
  return rows.length === 1;
}
