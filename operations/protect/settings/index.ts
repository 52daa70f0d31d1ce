/**
 * Protection settings of a server: whether its customer sees the protection views, and by which channels attacks are told.
 *
 * Switching the views off hides pages, JSON and alerts; observing, storing and defending go on, and switching on again shows
 * what was chosen and observed before (NET-1.6). Without a choice the views and alerts of attacks are on, all others off. Only customers change them, audited.
 */

import { CodedError } from '#common/errors/index.ts';
import { type Actor, type CustomerActor, forbidden } from '#operations/accounts/index.ts';
import { lockLiving } from '#operations/servers/index.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { reached, type Subject } from '../subject.ts';
import type { ProtectSettings } from './settings.ts';
import * as store from './store.ts';

export {
  type AlertChannel,
  channelsSince,
  findingAlertsSince,
  openChannels,
  portChannelsSince,
} from './settings.ts';
export { findSettings } from './store.ts';

export type ProtectSettingsFeature = ReturnType<typeof createProtectSettings>;

export function createProtectSettings(deps: ChangeSettingsDeps) {
  return {
    /** Throws `accounts.forbidden`. */
    find: async (actor: Actor, of: Subject) => store.findSettings(deps.db(), reached(actor, of)),
    /** Those of a customer's servers whose protection views are off. */
    listHidden: async (actor: CustomerActor, serverIds: readonly number[]): Promise<Set<number>> =>
      new Set(await store.listHidden(deps.db(), serverIds, actor.tenantIds)),
    /** Throws `protect_settings.not_found`, `accounts.forbidden`. Customers only. */
    change: (actor: Actor, serverId: number, wanted: ProtectSettings) =>
      changeSettings(deps, actor, serverId, wanted),
  };
}

interface ChangeSettingsDeps {
  db: () => Queryable;
  /** Called in the transaction that switches the views of a server off. */
  onViewsOff(tx: Queryable, serverId: number): Promise<void>;
}

/** Stores what a customer chose for a server. Throws `protect_settings.not_found`, `accounts.forbidden`. */
async function changeSettings(
  deps: ChangeSettingsDeps,
  actor: Actor,
  serverId: number,
  wanted: ProtectSettings,
): Promise<void> {
  if (actor.kind !== 'customer' || !actor.canWrite)
    throw forbidden('Only the customer changes the protection settings of a server.');
  await inTransaction(deps.db(), async (tx) => {
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
