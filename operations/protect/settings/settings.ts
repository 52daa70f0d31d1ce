/** What a customer chooses for one server, and the rules of changing it. */

export interface ProtectSettings {
  /** Off: views and alerts are hidden; observing, storing and defending go on (NET-1.6). */
  viewsOn: boolean;
  /** Mail to the people of the organization when an attack starts and ends. */
  attackMail: boolean;
  /** The webhook events `server.attack_started` and `server.attack_ended`, for endpoints that chose them. */
  attackWebhook: boolean;
}

export const defaultSettings: ProtectSettings = { viewsOn: true, attackMail: true, attackWebhook: true };

/** Since when each choice is on; null: it was never off. */
export interface StoredSettings extends ProtectSettings {
  viewsOnSince: Date | null;
  attackMailSince: Date | null;
  attackWebhookSince: Date | null;
}

export type AlertChannel = 'mail' | 'webhook';

/** The channels that are on. */
export function openChannels({ viewsOn, attackMail, attackWebhook }: ProtectSettings): AlertChannel[] {
  if (!viewsOn) return [];
  return [...(attackMail ? (['mail'] as const) : []), ...(attackWebhook ? (['webhook'] as const) : [])];
}

/** The channels that were on when an incident began: what was switched on later does not tell of it. */
export function channelsSince(settings: StoredSettings, startedAt: Date): AlertChannel[] {
  const wasOn = (since: Date | null) => since === null || since <= startedAt;
  const since = { mail: settings.attackMailSince, webhook: settings.attackWebhookSince };
  if (!wasOn(settings.viewsOnSince)) return [];
  return openChannels(settings).filter((channel) => wasOn(since[channel]));
}
