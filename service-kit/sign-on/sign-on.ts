import type { KeyObject } from 'node:crypto';
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
import { acceptAssertion, findAnswer, type Refusal, takeAnswer } from './accept-assertion.ts';
import {
  createKey,
  linkAccount,
  type PeerInput,
  savePeer,
  setKey,
  unlinkAccount,
  writeAccount,
} from './change-peer.ts';
import type { SignOnDeps } from './deps.ts';
import { type Issued, type IssueRequest, issueAssertion } from './issue-assertion.ts';
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
export interface SignOn<Actor extends AuditActor> {
  view(): Promise<SignOnView>;
  /** As in `SignOnDeps`. */
  findOperator(personId: number): Promise<SignInPerson | null>;
  createKey(actor: Actor): Promise<void>;
  setKey(actor: Actor, key: KeyObject): Promise<void>;
  savePeer(actor: Actor, input: PeerInput): Promise<void>;
  linkAccount(actor: Actor, input: { subjectId: number; personId: number }): Promise<void>;
  /** False when there is no such link. */
  unlinkAccount(actor: Actor, subjectId: number): Promise<boolean>;

  /** Where pages link to at the other program: builds the address of a place there. Null where nothing is set up. */
  links(): Promise<((place: Place, range?: PlaceRange) => string) | null>;
  /** Null: nothing is signed for this audience. */
  issue(actor: Actor, person: SignInPerson, session: Session, asked: IssueRequest): Promise<Issued | null>;

  /** Where a browser asks for an assertion to us; null where the other program's operators are not accepted. */
  askAddress(): Promise<{ address: string; audience: string } | null>;
  accept(assertion: string): Promise<{ ticket: string } | { refused: Refusal }>;
  findAnswer(secret: string | null, ticket: string | null): Promise<store.Answer | null>;
  /** The operator here that the answer's subject is linked with, or why there is none. */
  findLinked(answer: store.Answer): Promise<SignInPerson | 'not_linked' | 'no_access'>;
  /** Uses the ticket up and notes the use of the link; false when it was used before. */
  take(ticket: string, answer: store.Answer): Promise<boolean>;
  /** Links the answer's subject with the person of this session. Throws like `linkAccount`. */
  linkOwn(actor: Actor, person: SignInPerson, answer: store.Answer): Promise<void>;
}

export function createSignOn<Actor extends AuditActor>(deps: SignOnDeps<Actor>): SignOn<Actor> {
  const { db, findOperator } = deps;
  return {
    async view() {
      const [key, peer, accounts] = await Promise.all([
        store.readKey(db()),
        store.readPeer(db()),
        store.listAccounts(db()),
      ]);
      const { publicKey = null, createdAt: keyCreatedAt = null } = key ?? {};
      return { publicKey, keyCreatedAt, peer, accounts };
    },
    findOperator,
    createKey: (actor) => createKey(deps, actor),
    setKey: (actor, key) => setKey(deps, actor, key),
    savePeer: (actor, input) => savePeer(deps, actor, input),
    linkAccount: (actor, input) => linkAccount(deps, actor, input),
    unlinkAccount: (actor, subjectId) => unlinkAccount(deps, actor, subjectId),

    async links() {
      const peer = await store.readPeer(db());
      return peer?.isOffered ? (place, range) => beginUrl(peer.address, placePath(place, range)) : null;
    },
    issue: (actor, person, session, asked) => issueAssertion(deps, actor, person, session, asked),

    async askAddress() {
      const [peer, own] = [await store.readPeer(db()), await store.readKey(db())];
      const key = own && parseKeyText(own.publicKey);
      return peer?.isAccepted && key ? { address: peer.address, audience: keyIdOf(key) } : null;
    },
    accept: (assertion) => acceptAssertion(deps, assertion),
    findAnswer: (secret, ticket) => findAnswer(deps, secret, ticket),
    async findLinked({ subjectId }) {
      const linked = await store.findAccount(db(), subjectId);
      return linked === null ? 'not_linked' : ((await findOperator(linked.personId)) ?? 'no_access');
    },
    async take(ticket, { subjectId, subjectEmail }) {
      if (!(await takeAnswer(deps, ticket))) return false;
      await store.noteUse(db(), subjectId, subjectEmail);
      return true;
    },
    linkOwn: (actor, person, { subjectId, subjectEmail }) =>
      writeAccount(deps, actor, { subjectId, subjectEmail, personId: person.id }),
  };
}
