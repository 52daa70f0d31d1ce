/**
 * Assertions. The side that signs in accepts one once, and finds it again for the browser that asked for it; the side that
 * vouches issues one about its signed-in operator, for the other program alone.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  type AssertionFault,
  assertionSeconds,
  clockSkewSeconds,
  keyIdOf,
  parseKeyText,
  signAssertion,
  stateOf,
  verifyAssertion,
} from '#contracts/sign-on/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import type { Session } from '#service-kit/sessions/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import { openKey } from './change-peer.ts';
import type { SignOnDeps } from './index.ts';
import * as store from './store.ts';

/** Why a sign-on is refused. */
export type Refusal =
  | AssertionFault
  /** No peer, or its operators are not accepted. */
  | 'not_accepted'
  | 'used_before'
  /** It was not begun in this browser, or too long ago. */
  | 'other_browser'
  | 'not_linked'
  /** The person here was deactivated, or is no operator any more. */
  | 'no_access'
  | 'no_second_factor'
  | 'too_many';

/** How long a browser may take from its assertion to its session; long enough to sign in here and link the accounts. */
export const ticketMinutes = 10;

/** The ticket of an assertion of the other program, for a cookie; or why it is refused. */
export async function acceptAssertion<Actor extends AuditActor>(
  { db, clock }: SignOnDeps<Actor>,
  text: string,
): Promise<{ ticket: string } | { refused: Refusal }> {
  const [peer, own] = [await store.readPeer(db()), await store.readKey(db())];
  const key = peer?.isAccepted ? parseKeyText(peer.publicKey) : null;
  const ownKey = own && parseKeyText(own.publicKey);
  if (!key || !ownKey) return { refused: 'not_accepted' };
  const nowSeconds = clock.nowMs() / 1000;
  const verified = verifyAssertion(text, { key, audience: keyIdOf(ownKey), nowSeconds });
  if (typeof verified === 'string') return { refused: verified };
  const ticket = randomBytes(32).toString('base64url');
  const isNew = await store.insertAnswer(db(), {
    nonce: Buffer.from(verified.nonce, 'base64url'),
    ticket: digestOf(ticket),
    state: verified.state,
    path: verified.path,
    subjectId: verified.operator_id,
    subjectEmail: verified.operator_email,
    authenticatedAtMs: verified.authenticated_at * 1000,
    hasSecondFactor: verified.second_factor,
    keptSeconds: keptSeconds,
  });
  return isNew ? { ticket } : { refused: 'used_before' };
}

/** Longer than any assertion and any ticket is valid, also where the clocks of program and database differ. */
const keptSeconds = 2 * (assertionSeconds + 2 * clockSkewSeconds + ticketMinutes * 60);

/**
 * The accepted assertion of this browser: it must have both the secret that it was given before, to which the assertion is
 * bound, and the ticket of the answer. Null where either is missing, so that a stranger cannot sign a person in as someone else.
 */
export async function findAnswer<Actor extends AuditActor>(
  { db }: SignOnDeps<Actor>,
  secret: string | null,
  ticket: string | null,
): Promise<store.Answer | null> {
  if (secret === null || ticket === null) return null;
  const answer = await store.findAnswer(db(), digestOf(ticket), ticketMinutes);
  return answer !== null && answer.state === stateOf(secret, answer.path) ? answer : null;
}

/** Uses the ticket up; false when it was used before. */
export function takeAnswer<Actor extends AuditActor>(
  { db }: SignOnDeps<Actor>,
  ticket: string,
): Promise<boolean> {
  return store.takeAnswer(db(), digestOf(ticket));
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** What the other program asked for by way of the browser; the texts were checked for their form. */
export interface IssueRequest {
  /** The key id of who asks. */
  audience: string;
  state: string;
  path: string;
}

interface Issued {
  /** Where the browser posts it. */
  address: string;
  assertion: string;
}

/**
 * Signs that this person is signed in here. Null when the audience is not the other program, or when our operators are not
 * offered to it: to a stranger nothing is signed.
 */
export async function issueAssertion<Actor extends AuditActor>(
  { db, clock, secrets }: SignOnDeps<Actor>,
  actor: Actor,
  person: SignInPerson,
  session: Session,
  { audience, state, path }: IssueRequest,
): Promise<Issued | null> {
  const [peer, own] = [await store.readPeer(db()), await openKey(db(), secrets)];
  const peerKey = peer?.isOffered ? parseKeyText(peer.publicKey) : null;
  if (!peer || !own || !peerKey || keyIdOf(peerKey) !== audience) return null;
  const nonce = randomBytes(32).toString('base64url');
  const issuedAt = Math.floor(clock.nowMs() / 1000);
  const assertion = signAssertion(own.key, own.publicKey, {
    audience,
    operator_id: person.id,
    operator_email: person.email,
    issued_at: issuedAt,
    nonce,
    state,
    path,
    // The database's clock may be ahead of ours by a moment.
    authenticated_at: Math.min(issuedAt, Math.floor(session.authenticatedAtMs / 1000)),
    second_factor: session.hasSecondFactor,
  });
  await inTransaction(db(), (trx) =>
    record(trx, actor, {
      operation: 'sign_on.issue_assertion',
      subject: { kind: 'sign_on', id: 'peer', name: peer.address },
      after: { path, nonce, hasSecondFactor: session.hasSecondFactor },
    }),
  );
  return { address: peer.address, assertion };
}
