import { CodedError } from '#common/errors/index.ts';
import { type Actor, forbidden } from '#operations/accounts/index.ts';
import { lockLiving } from '#operations/servers/index.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ProtectSettings } from './settings.ts';
import * as store from './store.ts';

export interface ChangeSettingsDeps {
  db: () => Queryable;
  /** Called in the transaction that switches the views of a server off. */
  onViewsOff(tx: Queryable, serverId: number): Promise<void>;
}

/** Stores what a customer chose for a server. Throws `protect_settings.not_found`, `accounts.forbidden`. */
export async function changeSettings(
  deps: ChangeSettingsDeps,
  actor: Actor,
  serverId: number,
  wanted: ProtectSettings,
): Promise<void> {
  if (actor.kind !== 'customer' || !actor.canWrite)
    throw forbidden('Only the customer changes the protection settings of a server.');
  await deps
    .db()
    .transaction()
    .execute(async (tx) => {
      const server = (await lockLiving(tx, actor.tenantIds, [serverId]))[0];
      if (!server) throw new CodedError('protect_settings.not_found', 'There is no such server.');
      const of = { serverId, tenantId: server.tenantId };
      const held = await store.findSettings(tx, of);
      const changed = changedMembers(choicesOf(held), wanted);
      if (Object.keys(changed.after).length === 0) return;
      await store.putSettings(tx, of, wanted);
      if (held.viewsOn && !wanted.viewsOn) await deps.onViewsOff(tx, serverId);
      await record(tx, actor, {
        operation: 'protect.change_settings',
        subject: { kind: 'server', id: serverId, name: server.name },
        tenantId: server.tenantId,
        ...changed,
      });
    });
}

/** The choices without their times. */
function choicesOf(settings: ProtectSettings): ProtectSettings {
  const { viewsOn, attackMail, attackWebhook, portMail, portWebhook, findingMail, findingWebhook } = settings;
  return { viewsOn, attackMail, attackWebhook, portMail, portWebhook, findingMail, findingWebhook };
}
