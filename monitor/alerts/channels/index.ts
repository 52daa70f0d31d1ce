/** The kinds of alert channels, in the order of their menu. */
import { alertmanager } from './alertmanager.ts';
import type { ChannelKind } from './channel-kind.ts';
import { discord } from './discord.ts';
import { mail } from './mail.ts';
import { ntfy } from './ntfy.ts';
import { opsgenie } from './opsgenie.ts';
import { pagerduty } from './pagerduty.ts';
import { slack } from './slack.ts';
import { syslog } from './syslog.ts';
import { teams } from './teams.ts';
import { telegram } from './telegram.ts';
import { webhook } from './webhook.ts';

export {
  type ChannelField,
  type ChannelKind,
  type ChannelSettings,
  invalidField,
  type Sent,
} from './channel-kind.ts';

/** By the name that is stored. */
export const channelKinds = {
  ...{ email: mail, webhook, slack, teams, discord, telegram, ntfy },
  ...{ pagerduty, opsgenie, alertmanager, syslog },
} satisfies Record<string, ChannelKind>;
export type ChannelKindName = keyof typeof channelKinds;

/** Null for a name that is no kind. */
export function channelKindOf(name: string): ChannelKind | null {
  return Object.hasOwn(channelKinds, name) ? channelKinds[name as ChannelKindName] : null;
}
