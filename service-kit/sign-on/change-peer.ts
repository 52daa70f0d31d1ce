/** What operators set: this program's key, the other program, and which accounts belong together. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { requirePrivateTransport } from '#common/transport/index.ts';
import { keyText, parseKeyText } from '#contracts/sign-on/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { SignOnDeps } from './index.ts';
import * as store from './store.ts';

/** A peer as typed. */
export interface PeerInput {
  address: string;
  publicKey: string;
  isAccepted: boolean;
  isOffered: boolean;
}

/** Makes a new key in place of the former one, whose signatures the other program refuses from the new one's entry on. */
export async function createKey<Actor extends AuditActor>(deps: SignOnDeps<Actor>, actor: Actor) {
  deps.requireOperator(actor);
  await setKey(deps, actor, generateKeyPairSync('ed25519').privateKey);
}

/** Puts a key that was made elsewhere in use, as worlds do that are set up as a whole. Writing the same one changes nothing. */
export async function setKey<Actor extends AuditActor>(
  { db, secrets, requireOperator }: SignOnDeps<Actor>,
  actor: Actor,
  key: KeyObject,
): Promise<void> {
  requireOperator(actor);
  const publicKey = keyText(createPublicKey(key));
  await secrets.ready();
  await inTransaction(db(), async (trx) => {
    await store.lockPeer(trx);
    const before = await store.readKey(trx);
    if (before?.publicKey === publicKey) return;
    const bytes = key.export({ format: 'der', type: 'pkcs8' });
    await store.writeKey(trx, publicKey, await secrets.seal(trx, store.signingKey, store.onlyRow, bytes));
    await record(trx, actor, {
      operation: 'sign_on.create_key',
      subject: subjectOf('key'),
      before: before && { publicKey: before.publicKey },
      after: { publicKey },
    });
  });
}

/** The key that signs, with its public half; null before there is one. */
export async function openKey(
  db: Queryable,
  secrets: SignOnDeps<never>['secrets'],
): Promise<{ key: KeyObject; publicKey: KeyObject } | null> {
  await secrets.ready();
  const stored = await store.readKey(db);
  if (stored === null) return null;
  const bytes = await secrets.open(db, store.signingKey, store.onlyRow, stored.sealedKey);
  const key = createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' });
  return { key, publicKey: createPublicKey(key) };
}

/**
 * Says who the other program is and what is allowed. With another key all linked accounts are forgotten: another program's
 * ids mean other people. Throws `sign_on.invalid` with `details.field`.
 */
export async function savePeer<Actor extends AuditActor>(
  deps: SignOnDeps<Actor>,
  actor: Actor,
  input: PeerInput,
): Promise<void> {
  deps.requireOperator(actor);
  const peer = { ...input, address: parseAddress(deps, input.address), publicKey: input.publicKey.trim() };
  if (parseKeyText(peer.publicKey) === null)
    throw invalid(
      'public_key',
      'This is not a public key. Copy the whole text from the other console, svcpub_….',
    );
  await inTransaction(deps.db(), async (trx) => {
    await store.lockPeer(trx);
    const [before, own] = [await store.readPeer(trx), await store.readKey(trx)];
    if (own === null)
      throw invalid('public_key', 'Create the key of this program first: the other program needs it.');
    if (own.publicKey === peer.publicKey)
      throw invalid('public_key', 'This is the key of this program. Enter the key of the other one.');
    await store.writePeer(trx, peer);
    const isOther = before !== null && before.publicKey !== peer.publicKey;
    const unlinked = isOther ? await store.forgetPeerAccounts(trx) : 0;
    await record(trx, actor, {
      operation: 'sign_on.save_peer',
      subject: { ...subjectOf('peer'), name: peer.address },
      before,
      after: unlinked > 0 ? { ...peer, accountsUnlinked: unlinked } : peer,
    });
  });
}

function parseAddress(deps: { allowsInsecureHttp: boolean }, text: string): string {
  const url = URL.parse(text.trim());
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw invalid('address', 'The address must look like https://monitor.example.com.');
  // Its pages are at the root of a host; a path would be lost by its redirects.
  if (url.pathname !== '/') throw invalid('address', 'The address must not have a path.');
  try {
    requirePrivateTransport(url.origin, {
      isAllowed: deps.allowsInsecureHttp,
      advice: 'Use https, or an address of this machine.',
    });
  } catch (error) {
    throw invalid('address', (error as Error).message);
  }
  return url.origin;
}

/**
 * Links an operator of the other program with a person here, by the decision of an operator. Throws `sign_on.invalid`
 * where one of the two is linked already, or where the person is no operator.
 */
export async function linkAccount<Actor extends AuditActor>(
  deps: SignOnDeps<Actor>,
  actor: Actor,
  input: { subjectId: number; personId: number },
): Promise<void> {
  deps.requireOperator(actor);
  await writeAccount(deps, actor, { ...input, subjectEmail: null });
}

/** The same by the person of this session, who has shown both accounts. */
export async function writeAccount<Actor extends AuditActor>(
  deps: SignOnDeps<Actor>,
  actor: Actor,
  account: { subjectId: number; subjectEmail: string | null; personId: number },
): Promise<void> {
  const person = await deps.findOperator(account.personId);
  if (person === null) throw invalid('person', 'This person is no operator of this program.');
  await inTransaction(deps.db(), async (trx) => {
    await store.lockPeer(trx);
    if ((await store.readPeer(trx)) === null)
      throw invalid('subject', 'Set up the other program before accounts are linked.');
    if (!(await store.insertAccount(trx, account)))
      throw invalid('subject', 'One of these accounts is linked already. Remove that link first.');
    const { subjectId, subjectEmail } = account;
    await record(trx, actor, {
      operation: 'sign_on.link_account',
      subject: { kind: 'account_link', id: subjectId, name: person.email },
      after: { subjectId, subjectEmail, personId: person.id },
    });
  });
}

/** False when there is no such link. */
export async function unlinkAccount<Actor extends AuditActor>(
  deps: SignOnDeps<Actor>,
  actor: Actor,
  subjectId: number,
): Promise<boolean> {
  deps.requireOperator(actor);
  return inTransaction(deps.db(), async (trx) => {
    const linked = await store.deleteAccount(trx, subjectId);
    if (linked === null) return false;
    await record(trx, actor, {
      operation: 'sign_on.unlink_account',
      subject: { kind: 'account_link', id: subjectId },
      before: { subjectId, subjectEmail: linked.subjectEmail, personId: linked.personId },
    });
    return true;
  });
}

const subjectOf = (id: string) => ({ kind: 'sign_on', id });

/** The refusal of what was typed; `field` names the field of the form. */
export function invalid(field: string, message: string): CodedError {
  return new CodedError('sign_on.invalid', message, { field });
}
