import type { KeyObject } from 'node:crypto';
import { createPrivateKey } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { CodedError } from '#common/errors/index.ts';
import {
  beginUrl,
  keyIdOf,
  type Place,
  type PlaceRange,
  parseKeyText,
  placePath,
} from '#contracts/sign-on/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { Session } from '#service-kit/sessions/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import { acceptAssertion, findAnswer, type IssueRequest, issueAssertion, takeAnswer } from './assertions.ts';
import {
  createKey,
  linkAccount,
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
