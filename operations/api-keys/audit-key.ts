import { type AuditActor, record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/** One entry of the audit trail about a key, which is its organization's to read. */
export async function recordKey(
  trx: Queryable,
  actor: AuditActor,
  operation: `key.${string}`,
  keyId: string,
  states: { before?: object; after?: object } = {},
): Promise<void> {
  const key = await store.findSubject(trx, keyId);
  await record(trx, actor, {
    operation,
    subject: { kind: 'key', id: keyId, name: key?.name ?? null },
    organizationId: key?.organizationId ?? null,
    ...states,
  });
}
