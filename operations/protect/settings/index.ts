/**
 * Protection settings of a server: whether its customer sees the protection views, and by which channels attacks are told.
 *
 * Switching the views off hides pages, JSON and alerts; observing, storing and defending go on, and switching on again shows
 * what was chosen and observed before (NET-1.6). Without a choice the views and alerts of attacks are on, all others off. Only customers change them, audited.
 */
import { type Actor, type CustomerActor, forbidden, reachesTenant } from '#operations/accounts/index.ts';
import { type ChangeSettingsDeps, changeSettings } from './change-settings.ts';
import type { ProtectSettings, StoredSettings } from './settings.ts';
import * as store from './store.ts';

export {
  type AlertChannel,
  channelsSince,
  type FindingMailChoice,
  findingAlertsSince,
  findingMailChoices,
  openChannels,
  type ProtectSettings,
  portChannelsSince,
} from './settings.ts';
export { findSettings } from './store.ts';

export interface ProtectSettingsFeature {
  /** Throws `accounts.forbidden`. */
  find(actor: Actor, of: { serverId: number; tenantId: number }): Promise<StoredSettings>;
  /** Those of a customer's servers whose protection views are off. */
  listHidden(actor: CustomerActor, serverIds: readonly number[]): Promise<Set<number>>;
  /** Throws `protect_settings.not_found`, `accounts.forbidden`. Customers only. */
  change(actor: Actor, serverId: number, wanted: ProtectSettings): Promise<void>;
}

export function createProtectSettings(deps: ChangeSettingsDeps): ProtectSettingsFeature {
  return {
    async find(actor, of) {
      if (!reachesTenant(actor, of.tenantId)) throw forbidden('This server belongs to another account.');
      return store.findSettings(deps.db(), of);
    },
    listHidden: async (actor, serverIds) =>
      new Set(await store.listHidden(deps.db(), serverIds, actor.tenantIds)),
    change: (actor, serverId, wanted) => changeSettings(deps, actor, serverId, wanted),
  };
}
