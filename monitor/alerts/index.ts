/**
 * Alerts: episodes that open and resolve, and their notifications.
 *
 * Judged from stored facts by the database's clock, under a lease: for any number of processes, a trouble is one
 * episode with one notification for each transition and channel. An episode opens when the facts are bad and resolves
 * only after a continuously observed recovery; unknown facts change nothing. Notifications are written in the
 * transaction of the transition and delivered at least once, under a stable id.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import { createLeasedLoop } from '#service-kit/leases/index.ts';
import type { Post, SmtpSettings } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import { createDatabaseWatch, type System } from '#service-kit/system/index.ts';
import type { TargetRules } from '#service-kit/webhooks/index.ts';
import { recipientsOf } from './channels/mail.ts';
import * as channels from './channels-store.ts';
import { type Episode, readEpisode, readEpisodes } from './describe-episode.ts';
import type { FindSubjectsDeps } from './find-subjects.ts';
import { judgeSubjects } from './judge-subjects.ts';
import { addChannel, type ChannelInput, changeChannel, sendTest } from './manage-channels.ts';
import { createSender } from './send-notifications.ts';
import * as store from './store.ts';

export type { ChannelField } from './channels/channel-kind.ts';
export { type ChannelKindName, channelKindOf, channelKinds } from './channels/index.ts';
export type { Channel } from './channels-store.ts';
export { copiedVerdict, endingText, endingVerdict } from './credential-health.ts';
export { failureNames, measuredOf, skewText, titleOf } from './describe-episode.ts';
export { alertKinds } from './episode.ts';
export {
  captureStates,
  diskShare,
  downMinutes,
  lossMinutes,
  lossShare,
  missingSeconds,
  outageMinutes,
  refusedSeconds,
  skewSeconds,
  skewSecondsOf,
  spoolShare,
  waitingSeconds,
} from './find-subjects.ts';
export type { ChannelInput } from './manage-channels.ts';
export { createFindingAlerts } from './note-findings.ts';
export { noteIncidents } from './note-incidents.ts';
export type { Episode };

/** Columns with sealed secrets of alerts. */
export const alertSecrets = [channels.channelSecret] as const;

export interface AlertsDeps extends FindSubjectsDeps {
  db: () => Queryable;
  secrets: Secrets;
  clock: Clock;
  reporter: Reporter;
  /** Allowed target addresses of webhooks. */
  rules: TargetRules;
  /** Null: no mail server is configured; mails fail. */
  mail: SmtpSettings | null;
  post: Pick<Post, 'send'>;
  system: Pick<System, 'read' | 'checkWrites'>;
  /** URL of the console, for links; null when unknown. */
  consoleUrl: string | null;
}

export type Alerts = ReturnType<typeof createAlerts>;

const judgeEveryMs = 15_000;
const leaseSeconds = 45;
const noteLengthMax = 500;

export function createAlerts(deps: AlertsDeps) {
  const { db } = deps;
  const loop = createLeasedLoop({
    name: 'alerts',
    intervalMs: judgeEveryMs,
    ttlSeconds: leaseSeconds,
    db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(lease) {
      const { opened, resolved } = await judgeSubjects(deps, lease);
      if (opened + resolved > 0) deps.reporter.info('alerts judged', { opened, resolved });
    },
  });
  const sender = createSender(deps);
  const watch = createDatabaseWatch({
    ...deps,
    program: 'monitor',
    checkWrites: () => deps.system.checkWrites(),
    listRecipients: async () =>
      (await channels.listChannels(db())).flatMap(({ isEnabled, kind, settings }) =>
        isEnabled && kind === 'email' ? recipientsOf(settings) : [],
      ),
  });
  return {
    /** Judges every 15 seconds; may run in any number of processes. */
    loop,
    /** Delivers notifications; may run in any number of processes. */
    sender,
    parts: [loop, sender, watch] satisfies readonly Part[],
    /** Mail is configured. */
    hasMail: deps.mail !== null,
    /** Open episodes, the newest first; of all sites when `siteId` is null. */
    listOpen: (siteId: number | null, limit: number) => readEpisodes(db(), { siteId, isOpen: true, limit }),
    /** Resolved episodes, the newest first. */
    listResolved: (siteId: number | null, limit: number) =>
      readEpisodes(db(), { siteId, isOpen: false, limit }),
    find: (episodeId: number) => readEpisode(db(), episodeId),
    /** Acknowledges an episode. Returns false when it is not open. */
    async acknowledge(actor: Actor, episodeId: number, by: string, note: string): Promise<boolean> {
      requireOperator(actor);
      const told = oneLine(note).slice(0, noteLengthMax);
      return recorded(
        db(),
        actor,
        { operation: 'alert.acknowledge', subject: { kind: 'alert', id: episodeId }, after: { note: told } },
        (trx) => store.acknowledge(trx, episodeId, by, told),
      );
    },
    /** Mutes the episode's subject for hours; 0 unmutes it. */
    async mute(actor: Actor, episodeId: number, by: string, hours: number): Promise<boolean> {
      requireOperator(actor);
      return recorded(
        db(),
        actor,
        { operation: 'alert.mute', subject: { kind: 'alert', id: episodeId }, after: { hours } },
        (trx) => store.mute(trx, episodeId, by, hours),
      );
    },
    listChannels: () => channels.listChannels(db()),
    addChannel: (actor: Actor, input: ChannelInput) => addChannel(deps, actor, input),
    /** Everything but its kind. Returns false when there is no such channel. Throws `alerts.invalid`, `webhooks.invalid`. */
    changeChannel: (actor: Actor, channelId: number, input: Omit<ChannelInput, 'kind'>) =>
      changeChannel(deps, actor, channelId, input),
    async setChannelEnabled(actor: Actor, channelId: number, isEnabled: boolean): Promise<boolean> {
      requireOperator(actor);
      const operation = isEnabled ? 'channel.enable' : 'channel.disable';
      return recorded(db(), actor, { operation, subject: { kind: 'channel', id: channelId } }, (trx) =>
        channels.setChannelEnabled(trx, channelId, isEnabled),
      );
    },
    async deleteChannel(actor: Actor, channelId: number): Promise<boolean> {
      requireOperator(actor);
      const subject = { kind: 'channel', id: channelId };
      return recorded(db(), actor, { operation: 'channel.delete', subject }, (trx) =>
        channels.deleteChannel(trx, channelId),
      );
    },
    /** Sends a test through a channel, on the same path as alerts. Throws `alerts.test_limit`. */
    async sendTest(actor: Actor, channelId: number): Promise<boolean> {
      requireOperator(actor);
      const subject = { kind: 'channel', id: channelId };
      return recorded(db(), actor, { operation: 'channel.test', subject }, (trx) => sendTest(trx, channelId));
    },
  };
}
