/** What a customer chooses for one server, and the rules of changing it. */
import { mailedSeverities } from '#contracts/findings.ts';

export interface ProtectSettings {
  /** Off: views and alerts are hidden; observing, storing and defending go on (NET-1.6). */
  viewsOn: boolean;
  /** Mail to the people of the organization when an attack starts and ends. */
  attackMail: boolean;
  /** The webhook events of attacks and of filters against them, for endpoints that chose them. */
  attackWebhook: boolean;
  /** Mail to the people of the organization when a scan finds a newly open port. */
  portMail: boolean;
  /** The webhook events `server.port_opened` and `server.port_closed`, for endpoints that chose them. */
  portWebhook: boolean;
  /** Mail to the people of the organization when a check finds new potential vulnerabilities of this severity on. */
  findingMail: FindingMailChoice;
  /** The webhook event `server.finding_new`, for endpoints that chose it. */
  findingWebhook: boolean;
}

export const findingMailChoices = ['off', ...mailedSeverities] as const;
export type FindingMailChoice = (typeof findingMailChoices)[number];

export const defaultSettings: ProtectSettings = {
  viewsOn: true,
  attackMail: true,
  attackWebhook: true,
  portMail: false,
  portWebhook: false,
  findingMail: 'off',
  findingWebhook: false,
};

/** Since when each choice is on; null: it was never off, or it is off. */
export interface StoredSettings extends ProtectSettings {
  viewsOnSince: Date | null;
  attackMailSince: Date | null;
  attackWebhookSince: Date | null;
  portMailSince: Date | null;
  portWebhookSince: Date | null;
  findingMailSince: Date | null;
  findingWebhookSince: Date | null;
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

/** The channels that were on when a scan ended: what was switched on later does not tell of it. */
export function portChannelsSince(settings: StoredSettings, endedAt: Date): AlertChannel[] {
  const wasOn = (isOn: boolean, since: Date | null) => isOn && isBefore(since, endedAt);
  const { viewsOn, viewsOnSince, portMail, portMailSince, portWebhook, portWebhookSince } = settings;
  if (!wasOn(viewsOn, viewsOnSince)) return [];
  return [
    ...(wasOn(portMail, portMailSince) ? (['mail'] as const) : []),
    ...(wasOn(portWebhook, portWebhookSince) ? (['webhook'] as const) : []),
  ];
}

/** What was on when a check was made: what was switched on later does not tell of it. `mailFrom`: null is off. */
export function findingAlertsSince(
  settings: StoredSettings,
  checkedAt: Date,
): { isWebhookOn: boolean; mailFrom: Exclude<FindingMailChoice, 'off'> | null } {
  const { viewsOn, viewsOnSince, findingMail, findingMailSince, findingWebhook, findingWebhookSince } =
    settings;
  if (!viewsOn || !isBefore(viewsOnSince, checkedAt)) return { isWebhookOn: false, mailFrom: null };
  return {
    isWebhookOn: findingWebhook && isBefore(findingWebhookSince, checkedAt),
    mailFrom: findingMail === 'off' || !isBefore(findingMailSince, checkedAt) ? null : findingMail,
  };
}

const isBefore = (since: Date | null, at: Date) => since === null || since <= at;
