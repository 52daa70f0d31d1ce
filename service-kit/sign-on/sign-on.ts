import { createHash, createPrivateKey, type KeyObject, randomBytes } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { CodedError } from '#common/errors/index.ts';
import {
  type AssertionFault,
  assertionSeconds,
  beginUrl,
  clockSkewSeconds,
  keyIdOf,
  type Place,
  type PlaceRange,
  parseKeyText,
  placePath,
  signAssertion,
  stateOf,
  verifyAssertion,
} from '#contracts/sign-on/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import type { Session } from '#service-kit/sessions/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import {
  createKey,
  linkAccount,
  openKey,
  type PeerInput,
  savePeer,
  setKey,
  unlinkAccount,
  writeAccount,
} from './change-peer.ts';
import type { SignOnDeps } from './index.ts';
import * as store from './store.ts';

/** What the settings page shows. */
export interface SignOnView {
  /** The public key of this program, as people copy it. */
  publicKey: string | null;
  keyCreatedAt: Date | null;
  peer: store.Peer | null;
  accounts: readonly store.LinkedAccount[];
}

/** `Actor`: the actors of the program. Changes throw `sign_on.invalid` with `details.field`. */
export type SignOn<Actor extends AuditActor> = ReturnType<typeof createSignOn<Actor>>;

export function createSignOn<Actor extends AuditActor>(deps: SignOnDeps<Actor>) {
  const { db, findOperator } = deps;
  return {
    async view(): Promise<SignOnView> {
      const [key, peer, accounts] = await Promise.all([
        store.readKey(db()),
        store.readPeer(db()),
        store.listAccounts(db()),
      ]);
      const { publicKey = null, createdAt: keyCreatedAt = null } = key ?? {};
      return { publicKey, keyCreatedAt, peer, accounts };
    },
    /** As in `SignOnDeps`. */
    findOperator,
    createKey: (actor: Actor) => createKey(deps, actor),
    setKey: (actor: Actor, key: KeyObject) => setKey(deps, actor, key),
    savePeer: (actor: Actor, input: PeerInput) => savePeer(deps, actor, input),
    linkAccount: (actor: Actor, input: { subjectId: number; personId: number }) =>
      linkAccount(deps, actor, input),
    /** False when there is no such link. */
    unlinkAccount: (actor: Actor, subjectId: number) => unlinkAccount(deps, actor, subjectId),

    /** Where pages link to at the other program: builds the address of a place there. Null where nothing is set up. */
    async links(): Promise<((place: Place, range?: PlaceRange) => string) | null> {
      const peer = await store.readPeer(db());
      return peer?.isOffered ? (place, range) => beginUrl(peer.address, placePath(place, range)) : null;
    },
    /** Null: nothing is signed for this audience. */
    issue: (actor: Actor, person: SignInPerson, session: Session, asked: IssueRequest) =>
      issueAssertion(deps, actor, person, session, asked),

    /** Where a browser asks for an assertion to us; null where the other program's operators are not accepted. */
    async askAddress(): Promise<{ address: string; audience: string } | null> {
      const [peer, own] = [await store.readPeer(db()), await store.readKey(db())];
      const key = own && parseKeyText(own.publicKey);
      return peer?.isAccepted && key ? { address: peer.address, audience: keyIdOf(key) } : null;
    },
    accept: (assertion: string) => acceptAssertion(deps, assertion),
    findAnswer: (secret: string | null, ticket: string | null) => findAnswer(deps, secret, ticket),
    /** The operator here that the answer's subject is linked with, or why there is none. */
    async findLinked({ subjectId }: store.Answer): Promise<SignInPerson | 'not_linked' | 'no_access'> {
      const linked = await store.findAccount(db(), subjectId);
      return linked === null ? 'not_linked' : ((await findOperator(linked.personId)) ?? 'no_access');
    },
    /** Uses the ticket up and notes the use of the link; false when it was used before. */
    async take(ticket: string, { subjectId, subjectEmail }: store.Answer): Promise<boolean> {
      if (!(await takeAnswer(deps, ticket))) return false;
      await store.noteUse(db(), subjectId, subjectEmail);
      return true;
    },
    /** Links the answer's subject with the person of this session. Throws like `linkAccount`. */
    linkOwn: (actor: Actor, person: SignInPerson, { subjectId, subjectEmail }: store.Answer) =>
      writeAccount(deps, actor, { subjectId, subjectEmail, personId: person.id }),
  };
}

// Trust and linked accounts of a demo world, as the program that starts both consoles hands them over.

const Seed = Type.Object({
  /** The key of this program, PKCS #8 in base64. */
  key: Type.String(),
  address: Type.String(),
  /** Of the other program. */
  public_key: Type.String(),
  /** Operators of the other program, and which people here they are. */
  accounts: Type.Array(Type.Object({ id: Type.Integer({ minimum: 1 }), email: Type.String() })),
});
type SignOnSeed = Static<typeof Seed>;

/**
 * Sets up what was not set up before: later changes by people stay. `text` is a `SignOnSeed` as JSON. Throws
 * `config.invalid` for any other text.
 */
export async function seedSignOn<Actor extends AuditActor>(
  signOn: SignOn<Actor>,
  actor: Actor,
  text: string,
  findPerson: (email: string) => Promise<{ id: number } | null>,
): Promise<void> {
  if ((await signOn.view()).peer !== null) return;
  const { key, address, public_key: publicKey, accounts } = parseSeed(text);
  await signOn.setKey(
    actor,
    createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' }),
  );
  await signOn.savePeer(actor, { address, publicKey, isAccepted: true, isOffered: true });
  for (const { id: subjectId, email } of accounts) {
    const person = await findPerson(email);
    if (person) await signOn.linkAccount(actor, { subjectId, personId: person.id });
  }
}

function parseSeed(text: string): SignOnSeed {
  try {
    const seed: unknown = JSON.parse(text);
    if (Value.Check(Seed, seed)) return seed;
  } catch {
    // The same sentence as for JSON of another shape.
  }
  throw new CodedError('config.invalid', 'SVC_DEMO_SIGN_ON does not describe a single sign-on.');
}

// Assertions. The side that signs in accepts one once, and finds it again for the browser that asked for it; the side that
// vouches issues one about its signed-in operator, for the other program alone.

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
async function acceptAssertion<Actor extends AuditActor>(
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
async function findAnswer<Actor extends AuditActor>(
  { db }: SignOnDeps<Actor>,
  secret: string | null,
  ticket: string | null,
): Promise<store.Answer | null> {
  if (secret === null || ticket === null) return null;
  const answer = await store.findAnswer(db(), digestOf(ticket), ticketMinutes);
  return answer !== null && answer.state === stateOf(secret, answer.path) ? answer : null;
}

/** Uses the ticket up; false when it was used before. */
function takeAnswer<Actor extends AuditActor>({ db }: SignOnDeps<Actor>, ticket: string): Promise<boolean> {
  return store.takeAnswer(db(), digestOf(ticket));
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** What the other program asked for by way of the browser; the texts were checked for their form. */
interface IssueRequest {
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
async function issueAssertion<Actor extends AuditActor>(
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
