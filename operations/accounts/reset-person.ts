import { endAccessLinks } from '#service-kit/access-links/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { endSessions, forgetDevices } from '#service-kit/sessions/index.ts';
import type { Person } from './account.ts';
import * as store from './store.ts';

/** Revokes the API keys of a person inside a transaction. */
export type RevokeKeysOf = (tx: Queryable, actor: AuditActor, personId: number) => Promise<void>;

/**
 * Takes an account away from the person who set it up without proving that the address is theirs: password, sessions,
 * known browsers, links and keys. The row stays for the person who does prove it.
 */
export async function resetPerson(
  tx: Queryable,
  actor: AuditActor,
  person: Person,
  revokeKeysOf: RevokeKeysOf,
): Promise<void> {
  await store.clearPassword(tx, person.id);
  await endSessions(tx, person.id);
  await forgetDevices(tx, person.email);
  await endAccessLinks(tx, person.id);
  await revokeKeysOf(tx, actor, person.id);
  const subject = { kind: 'person', id: person.id, name: person.email };
  await record(tx, actor, { operation: 'person.reset_account', subject });
}
