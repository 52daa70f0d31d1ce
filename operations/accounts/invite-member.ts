/** Invitations: a link, mailed to the invited address alone, that lets its reader join an organization in seven days. */

import { createHash, randomBytes } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import type { BreachedPasswords } from '#service-kit/sessions/index.ts';
import { endSessions, hashPassword, verifyPassword } from '#service-kit/sessions/index.ts';
import { invitationMail } from '#service-kit/sign-in/index.ts';
import {
  checkPassword,
  invalid,
  type Person,
  parseEmail,
  parseName,
  parseOrganizationName,
} from './account.ts';
import { type Actor, requireOwnerOrOperator } from './actor.ts';
import { actorOfPerson } from './note-own.ts';
import { type RevokeKeysOf, resetPerson } from './reset-person.ts';
import * as store from './store.ts';

const invitationDays = 7;
/** Mails to people who have not asked for them: of one organization, and to one address, in 24 hours. */
const perOrganizationMax = 20;
const perAddressMax = 3;

/**
 * The owner or an operator. The link goes to the address and to no page: a person who could read it could take the
 * address over. An older invitation of the address stops working. Throws `accounts.invalid`, also when no mail can be
 * sent, or when the organization or others have invited too many in a day.
 */
export async function inviteMember(
  deps: { db: Queryable; post: Post },
  actor: Actor,
  organizationId: number,
  emailText: string,
): Promise<Invitation> {
  const { db, post } = deps;
  requireOwnerOrOperator(actor, organizationId);
  const email = parseEmail(emailText);
  if (!post.canSend)
    throw invalid(
      'This installation has no mail server, so it cannot send invitations. Ask support.',
      'email',
    );
  const members = await store.listMemberships(db, { organizationId });
  if (members.some((member) => member.personEmail === email))
    throw invalid('This person is a member already.', 'email');
  const secret = randomBytes(32).toString('base64url');
  const invitedBy = actor.kind === 'customer' || actor.kind === 'staff' ? actor.personId : null;
  const invitation = await inTransaction(db, async (tx) => {
    await store.lockOrganization(tx, organizationId);
    const counts = await store.countInvitationsOfDay(tx, organizationId, email);
    if (counts.ofOrganization >= perOrganizationMax)
      throw invalid(
        `An organization invites at most ${perOrganizationMax} people in a day. Try again tomorrow.`,
      );
    if (counts.toAddress >= perAddressMax)
      throw invalid('This address was invited several times today. Try again tomorrow.', 'email');
    // Names that were given before this rule.
    parseOrganizationName((await store.findOrganization(tx, organizationId))?.name ?? '');
    await store.revokeInvitationsOf(tx, organizationId, email);
    const made = await store.insertInvitation(tx, {
      organizationId,
      email,
      digest: digestOf(secret),
      invitedByPersonId: invitedBy,
      days: invitationDays,
    });
    const subject = { kind: 'invitation', id: made.id, name: email };
    await record(tx, actor, { operation: 'invitation.create', subject, organizationId });
    return made;
  });
  const url = post.linkTo(`/join/${secret}`);
  const reason = await post.send(invitationMail(email, 'Virtual servers', invitation.organizationName, url));
  if (reason === null) return invitation;
  await store.revokeInvitation(db, organizationId, invitation.id);
  throw invalid(`The invitation was not sent: ${reason}. Try again, or ask support.`, 'email');
}

/** The open invitation of a link; null for every link that doesn't work (any more). */
export function findInvitation(db: Queryable, secret: string): Promise<Invitation | null> {
  return store.findOpenInvitation(db, digestOf(secret));
}

/**
 * Makes the reader of an invitation a member. A person with a verified address gives their password. Every other reader
 * sets one: the mail proves that the address is theirs, so an account that another set up with it is reset. A link works
 * once. Throws `accounts.invalid`; `details.isGuess` says that it was a wrong password.
 */
export async function acceptInvitation(
  deps: { db: Queryable; breached: BreachedPasswords; revokeKeysOf: RevokeKeysOf },
  secret: string,
  given: { name: string; password: string },
  origin: RequestOrigin,
): Promise<Person> {
  const { db } = deps;
  const invitation = await findInvitation(db, secret);
  if (invitation === null) throw goneInvitation();
  const known = await store.findPersonByEmail(db, invitation.email);
  const password =
    known?.isVerified && known.passwordHash !== null
      ? null
      : await newPassword(deps.breached, invitation, given);
  if (password === null && !(await isPasswordOf(known!, given.password))) throw wrongPassword();
  if (known !== null && !known.isActive) throw wrongPassword();
  try {
    return await inTransaction(db, async (tx) => {
      if (!(await store.takeInvitation(tx, invitation.id))) throw goneInvitation();
      const person = password === null ? known! : await setUp(tx, deps, origin, invitation.email, password);
      const member = (await store.listMemberships(tx, { personId: person.id })).find(
        (each) => each.organizationId === invitation.organizationId,
      );
      if (!member) await store.upsertMembership(tx, invitation.organizationId, person.id, 'member');
      await record(tx, actorOfPerson(person, origin), {
        operation: 'invitation.accept',
        subject: { kind: 'invitation', id: invitation.id, name: invitation.email },
        organizationId: invitation.organizationId,
        after: { personId: person.id, isNewPerson: known === null },
      });
      return person;
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw invalid('A person has joined with this address just now. Sign in.');
  }
}

interface NewPassword {
  name: string;
  passwordHash: string;
}

async function newPassword(
  breached: BreachedPasswords,
  invitation: Invitation,
  given: { name: string; password: string },
): Promise<NewPassword> {
  const name = parseName(given.name, 'Your name');
  await checkPassword(breached, given.password, { email: invitation.email, name });
  return { name, passwordHash: await hashPassword(given.password) };
}

function isPasswordOf(person: { passwordHash: string | null }, password: string): Promise<boolean> {
  return verifyPassword(person.passwordHash, password);
}

/** A person of this address with this password, verified now. */
async function setUp(
  tx: Queryable,
  { revokeKeysOf }: { revokeKeysOf: RevokeKeysOf },
  origin: RequestOrigin,
  email: string,
  { name, passwordHash }: NewPassword,
): Promise<Person> {
  const known = await store.lockPersonByEmail(tx, email);
  if (known === null)
    return store.insertPerson(tx, { email, name, passwordHash, staffRole: null, isVerified: true });
  if (known.isVerified) await endSessions(tx, known.id);
  else await resetPerson(tx, actorOfPerson(known, origin), known, revokeKeysOf);
  await store.updatePersonName(tx, known.id, name);
  await store.updatePassword(tx, known.id, passwordHash);
  await store.verifyEmail(tx, known.id);
  return { ...known, name, isVerified: true };
}

const goneInvitation = () => invalid('This invitation does not work any more. Ask for a new one.');

function wrongPassword() {
  const message = 'This address has a password already, and this is not it. Give that one, or reset it.';
  return new CodedError('accounts.invalid', message, { isGuess: true, field: 'password' });
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** An invitation to join an organization. */
export interface Invitation {
  id: number;
  organizationId: number;
  organizationName: string;
  email: string;
  expiresAt: Date;
}
