import { createHash, randomBytes } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { endSessions } from '#service-kit/sessions/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import type { OidcDeps, StaffRoleName } from './index.ts';
import { type ProvedIdentity, type ProviderFault, providerUrl, readAnswer } from './provider.ts';
import type { OidcSettings } from './settings.ts';
import * as store from './store.ts';

/** Why a person is not signed in. */
export type Refusal =
  | ProviderFault
  /** It was not begun in this browser, too long ago, or was used before. */
  | 'other_browser'
  | 'no_group'
  /** The address belongs to an account that is not linked. */
  | 'not_linked'
  /** The provider named no address for a new person, or none that is one. */
  | 'no_email'
  /** The person here was deactivated. */
  | 'no_access'
  /** The group would make the last operator a reader. */
  | 'last_operator'
  /** Someone else's session, or account at the provider. */
  | 'other_person'
  | 'no_second_factor'
  | 'too_many';

/** A browser may take this long at the provider. */
const requestMinutes = 10;

export interface Begin {
  purpose: store.Purpose;
  next: string;
  /** Who confirms or links. */
  personId?: number;
  /** The browser's secret, in a cookie. */
  secret: string;
  redirectUri: string;
}

export type Finished =
  | { refused: Refusal }
  | {
      purpose: 'sign_in';
      person: SignInPerson;
      identity: store.Identity;
      proved: ProvedIdentity;
      next: string;
    }
  | { purpose: 'confirm'; personId: number; proved: ProvedIdentity; next: string }
  /** `ticket`: of the link that waits for the person's word. */
  | { purpose: 'link'; ticket: string; next: string };

export type Oidc = ReturnType<typeof createOidc>;

export function createOidc(deps: OidcDeps) {
  const { db, provider } = deps;
  return {
    /** As people know the provider; null where there is none. */
    label: provider && new URL(provider.issuer).host,
    /** True for a person who may sign in by the provider only. */
    governs: async (personId: number): Promise<boolean> =>
      provider !== null &&
      ((await store.findIdentityOf(db(), provider.issuer, personId))?.isManaged ?? false),
    /** Where to send the browser. */
    async begin(begin: Begin): Promise<{ href: string } | { refused: Refusal }> {
      if (provider === null) return { refused: 'provider_down' };
      const { purpose, next, personId = null, secret, redirectUri } = begin;
      const state = randomBytes(32).toString('base64url');
      const binding = { secret, state, redirectUri, isConfirming: purpose === 'confirm' };
      const url = await providerUrl(provider, binding);
      if ('fault' in url) return { refused: url.fault };
      const request = { state: digestOf(state), browser: digestOf(secret), purpose, next, personId };
      await store.insertRequest(db(), request, requestMinutes);
      return url;
    },
    finish: (answer: Answer): Promise<Finished> =>
      provider === null ? Promise.resolve({ refused: 'provider_down' }) : finish(deps, provider, answer),
    /** The link that this person's browser is about to make. */
    async findPending(personId: number, secret: string, ticket: string): Promise<{ email: string } | null> {
      const found = await store.findRequest(db(), digestOf(ticket), digestOf(secret), requestMinutes);
      return isPendingOf(found, personId) ? { email: found.email! } : null;
    },
    /** Links the pending account with the person; null where there is none, false where it or they have a link. */
    async link(actor: AuditActor, personId: number, secret: string, ticket: string): Promise<boolean | null> {
      if (provider === null) return null;
      const { issuer } = provider;
      return inTransaction(db(), async (trx) => {
        const found = await store.takeRequest(trx, digestOf(ticket), digestOf(secret), requestMinutes);
        if (!isPendingOf(found, personId)) return null;
        const { subject, email } = found;
        const identity = { subject: subject!, email: email!, personId, isManaged: false };
        if ((await store.insertIdentity(trx, issuer, identity)) === null) return false;
        await noteLink(trx, actor, 'oidc.link', personId, { issuer, subject, email });
        return true;
      });
    },
    /** The account that this person is linked with. */
    findLinked: async (personId: number): Promise<store.Identity | null> =>
      provider && store.findIdentityOf(db(), provider.issuer, personId),
    /** Removes the link of a person who has another way in, and ends the sessions that were begun by it. */
    async unlink(actor: AuditActor, personId: number): Promise<void> {
      if (provider === null) return;
      await inTransaction(db(), async (trx) => {
        if (await store.deleteIdentityOf(trx, provider.issuer, personId))
          await noteLink(trx, actor, 'oidc.unlink', personId);
      });
    },
  };
}

const digestOf = (secret: string) => createHash('sha256').update(secret).digest();

function isPendingOf(found: store.OidcRequest | null, personId: number): found is store.OidcRequest {
  return found?.purpose === 'link' && found.subject !== null && found.personId === personId;
}

interface Answer {
  /** The browser's secret; null: it has none. */
  secret: string | null;
  redirectUri: string;
  /** Of the request by which the browser came back. */
  query: string;
  /** Who creates people and links, with the request's source. */
  actor: AuditActor;
}

async function finish(deps: OidcDeps, provider: OidcSettings, answer: Answer): Promise<Finished> {
  const { secret, redirectUri, query } = answer;
  const state = new URLSearchParams(query).get('state');
  if (secret === null || state === null) return { refused: 'other_browser' };
  const request = await store.takeRequest(deps.db(), digestOf(state), digestOf(secret), requestMinutes);
  if (request === null || request.subject !== null) return { refused: 'other_browser' };
  const { purpose, next, personId } = request;
  const binding = { secret, state, redirectUri, isConfirming: purpose === 'confirm' };
  const proved = await readAnswer(provider, binding, query);
  if ('fault' in proved) return { refused: proved.fault };
  const identity = await store.useIdentity(deps.db(), provider.issuer, proved);
  const role = roleOf(provider, proved);
  if (role === null) {
    // What a group gave ends with it, whichever way the session was begun.
    if (identity !== null) await endSessions(deps.db(), identity.personId);
    return { refused: 'no_group' };
  }
  if (purpose === 'link') {
    if (identity !== null) return { refused: 'other_person' };
    const ticket = randomBytes(32).toString('base64url');
    const { subject, email } = proved;
    const pending = { purpose, next, personId, subject, email };
    const row = { ...pending, state: digestOf(ticket), browser: digestOf(secret) };
    await store.insertRequest(deps.db(), row, requestMinutes);
    return { purpose, ticket, next };
  }
  if (purpose === 'confirm' && identity?.personId !== personId) return { refused: 'other_person' };
  const found = identity ?? (await addPerson(deps, provider, answer.actor, proved, role));
  if (typeof found === 'string') return { refused: found };
  const person = await deps.staff.findStaff(found.personId);
  if (person === null) return { refused: 'no_access' };
  if (!(await deps.staff.setRole(person.id, role))) return { refused: 'last_operator' };
  return purpose === 'confirm'
    ? { purpose, personId: person.id, proved, next }
    : { purpose: 'sign_in', person, identity: found, proved, next };
}

/** The strongest role of a person's groups. */
function roleOf(provider: OidcSettings, { groups }: ProvedIdentity): StaffRoleName | null {
  const isIn = (given: readonly string[]) => groups.some((group) => given.includes(group));
  return isIn(provider.operatorGroups) ? 'operator' : isIn(provider.readerGroups) ? 'reader' : null;
}

/** A person who is not known here yet. An address that an account has already is no proof of owning it. */
async function addPerson(
  deps: OidcDeps,
  { issuer }: OidcSettings,
  actor: AuditActor,
  { subject, email, name }: ProvedIdentity,
  role: StaffRoleName,
): Promise<store.Identity | Refusal> {
  if (email === '') return 'no_email';
  if (await deps.staff.isEmailTaken(email)) return 'not_linked';
  try {
    return await inTransaction(deps.db(), async (trx) => {
      const person = await deps.staff.create(trx, {
        email,
        name: oneLine(name).slice(0, 120) || email,
        role,
      });
      const made = { subject, email, personId: person.id, isManaged: true };
      const identity = await store.insertIdentity(trx, issuer, made);
      if (identity === null) throw new CodedError('oidc.twice', 'This account is being linked already.');
      await noteLink(trx, actor, 'oidc.create_person', person.id, { issuer, subject, email, role });
      return identity;
    });
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    return error.code.endsWith('.invalid') ? 'no_email' : 'not_linked';
  }
}

function noteLink(
  trx: Queryable,
  actor: AuditActor,
  operation: `oidc.${string}`,
  personId: number,
  after: object | null = null,
): Promise<void> {
  return record(trx, actor, { operation, subject: { kind: 'person', id: personId }, after });
}
