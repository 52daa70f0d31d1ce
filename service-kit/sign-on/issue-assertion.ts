/** The side that vouches: an assertion about our signed-in operator, for the other program alone. */
import { randomBytes } from 'node:crypto';
import { keyIdOf, parseKeyText, signAssertion } from '#contracts/sign-on/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import type { Session } from '#service-kit/sessions/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import { openKey } from './change-peer.ts';
import type { SignOnDeps } from './deps.ts';
import * as store from './store.ts';

/** What the other program asked for by way of the browser; the texts were checked for their form. */
export interface IssueRequest {
  /** The key id of who asks. */
  audience: string;
  state: string;
  path: string;
}

export interface Issued {
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
