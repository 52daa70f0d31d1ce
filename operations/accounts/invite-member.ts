/** Invitations: a link, shown once, that lets its holder join an organization within seven days. */
import { createHash, randomBytes } from 'node:crypto';
import { record } from '#service-kit/audit/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import { isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword, verifyPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, invalid, type Person, parseEmail, parseName } from './account.ts';
import { type Actor, requireOwnerOrOperator } from './actor.ts';
import * as store from './store.ts';

export interface Invitation {
  id: number;
  organizationId: number;
  organizationName: string;
  email: string;
  expiresAt: Date;
}

export interface OpenInvitation extends Invitation {
  /** The invited address belongs to somebody who has a password already. */
  isKnownPerson: boolean;
}

const invitationDays = 7;

/** The owner or an operator. The secret is in this answer alone; an older invitation of the address stops working. */
export async function inviteMember(
  db: Queryable,
  actor: Actor,
  organizationId: number,
  emailText: string,
): Promise<{ invitation: Invitation; secret: string }> {
  requireOwnerOrOperator(actor, organizationId);
  const email = parseEmail(emailText);
  const members = await store.listMemberships(db, { organizationId });
  if (members.some((member) => member.personEmail === email))
    throw invalid('This person is a member already.');
  const secret = randomBytes(32).toString('base64url');
  const invitedBy = actor.kind === 'customer' || actor.kind === 'staff' ? actor.personId : null;
  const invitation = await db.transaction().execute(async (tx) => {
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
  return { invitation, secret };
}

/** The open invitation of a link; null for every link that doesn't work (any more). */
export function findInvitation(db: Queryable, secret: string): Promise<OpenInvitation | null> {
  return store.findOpenInvitation(db, digestOf(secret));
}

/**
 * Makes the holder of a link a member. Somebody new gives a name and a password of at least ten characters; somebody
 * known proves with their password that the invited address is theirs. A link works once. Throws `accounts.invalid`.
 */
export async function acceptInvitation(
  db: Queryable,
  secret: string,
  given: { name: string; password: string },
  origin?: RequestOrigin,
): Promise<Person> {
  const invitation = await findInvitation(db, secret);
  if (invitation === null) throw invalid('This invitation does not work any more. Ask for a new one.');
  const known = await store.findPersonByEmail(db, invitation.email);
  if (known !== null) {
    if (!(await verifyPassword(known.passwordHash, given.password)) || !known.isActive)
      throw invalid('This is not the password of this address.');
  } else checkPassword(given.password);
  const passwordHash = known === null ? await hashPassword(given.password) : '';
  const name = known === null ? parseName(given.name, 'Your name') : '';
  try {
    return await db.transaction().execute(async (tx) => {
      if (!(await store.takeInvitation(tx, invitation.id)))
        throw invalid('This invitation does not work any more. Ask for a new one.');
      const person =
        known ??
        (await store.insertPerson(tx, { email: invitation.email, name, passwordHash, staffRole: null }));
      const member = (await store.listMemberships(tx, { personId: person.id })).find(
        (each) => each.organizationId === invitation.organizationId,
      );
      if (!member) await store.upsertMembership(tx, invitation.organizationId, person.id, 'member');
      const actor = {
        kind: 'customer',
        personId: person.id,
        keyId: null,
        name: person.email,
        origin,
      } as const;
      await record(tx, actor, {
        operation: 'invitation.accept',
        subject: { kind: 'invitation', id: invitation.id, name: invitation.email },
        organizationId: invitation.organizationId,
        after: { personId: person.id, isNewPerson: known === null },
      });
      return person;
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw invalid('Somebody has joined with this address just now. Sign in.');
  }
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
