/** What an organization's owner or an operator changes of it: its name, its members, its open invitations. */
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { parseOrganizationName } from './account.ts';
import { type Actor, requireOwnerOrOperator } from './actor.ts';
import * as store from './store.ts';

/** Idempotent; an owner stays one. */
export async function addMember(db: Queryable, actor: Actor, organizationId: number, personId: number) {
  requireOwnerOrOperator(actor, organizationId);
  await inTransaction(db, async (trx) => {
    const members = await store.listMemberships(trx, { organizationId });
    if (members.some((member) => member.personId === personId)) return;
    await store.upsertMembership(trx, organizationId, personId, 'member');
    await recordMember(trx, actor, 'organization.add_member', organizationId, personId);
  });
}

/** False when there was no such member; the owner can't be removed. */
export async function removeMember(
  db: Queryable,
  actor: Actor,
  organizationId: number,
  personId: number,
): Promise<boolean> {
  requireOwnerOrOperator(actor, organizationId);
  return inTransaction(db, async (trx) => {
    if (!(await store.deleteMembership(trx, organizationId, personId))) return false;
    await recordMember(trx, actor, 'organization.remove_member', organizationId, personId);
    return true;
  });
}

async function recordMember(
  trx: Queryable,
  actor: Actor,
  operation: string,
  organizationId: number,
  personId: number,
): Promise<void> {
  const name = (await store.findPerson(trx, personId))?.email ?? null;
  await record(trx, actor, { operation, subject: { kind: 'person', id: personId, name }, organizationId });
}

/** False when there is no such open invitation. */
export async function revokeInvitation(
  db: Queryable,
  actor: Actor,
  organizationId: number,
  invitationId: number,
): Promise<boolean> {
  requireOwnerOrOperator(actor, organizationId);
  return inTransaction(db, async (trx) => {
    if (!(await store.revokeInvitation(trx, organizationId, invitationId))) return false;
    const subject = { kind: 'invitation', id: invitationId };
    await record(trx, actor, { operation: 'invitation.revoke', subject, organizationId });
    return true;
  });
}

export async function renameOrganization(db: Queryable, actor: Actor, organizationId: number, given: string) {
  requireOwnerOrOperator(actor, organizationId);
  const name = parseOrganizationName(given);
  await inTransaction(db, async (trx) => {
    const before = await store.findOrganization(trx, organizationId);
    await store.updateOrganizationName(trx, organizationId, name);
    await record(trx, actor, {
      operation: 'organization.rename',
      subject: { kind: 'organization', id: organizationId, name },
      organizationId,
      before: { name: before?.name ?? null },
      after: { name },
    });
  });
}
