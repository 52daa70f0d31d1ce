import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword, verifyPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, invalid } from './account.ts';
import { type Actor, forbidden } from './actor.ts';
import * as store from './store.ts';

/** A person's own password; whoever only has their open browser doesn't know the old one. Keys change no password. */
export async function changePassword(
  db: Queryable,
  actor: Actor,
  given: { current: string; next: string },
): Promise<void> {
  const isPerson = (actor.kind === 'customer' && actor.keyId === null) || actor.kind === 'staff';
  if (!isPerson) throw forbidden('Only a signed-in person changes their password.');
  checkPassword(given.next);
  if (!(await verifyPassword(await store.findPasswordHash(db, actor.personId), given.current)))
    throw invalid('The current password is not right.');
  const passwordHash = await hashPassword(given.next);
  await inTransaction(db, async (trx) => {
    await store.updatePassword(trx, actor.personId, passwordHash);
    const subject = { kind: 'person', id: actor.personId, name: actor.name ?? null };
    await record(trx, actor, { operation: 'person.change_password', subject });
  });
}
