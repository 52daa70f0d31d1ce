/**
 * Delivers notifications of the outbox at least once, each under a stable id, in the order of each channel.
 *
 * Any number of processes may run it. A process that dies after sending and before recording sends again under the same
 * id.
 */
import { type Clock, systemClock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { createOutboxSender, type OutboxSender } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import { postDelivery, resolveByDns, signDelivery, type TargetRules } from '#service-kit/webhooks/index.ts';
import { channelSecret } from './channels-store.ts';
import { makeNotification, type Notification } from './notification.ts';
import * as outbox from './outbox-store.ts';
import { readEpisode } from './read-episodes.ts';
import { type MailSettings, sendMail } from './send-mail.ts';

export interface SenderDeps {
  db: () => Queryable;
  secrets: Secrets;
  clock?: Clock;
  reporter: Reporter;
  rules: TargetRules;
  /** Null: no mail server is configured; mails fail. */
  mail: MailSettings | null;
  consoleUrl: string | null;
}

/** `drain` delivers all due notifications; for tests. */
export type Sender = OutboxSender;

const retry = { firstMs: 10_000, maxMs: 1_800_000 };
/** Older notifications are dropped. */
const expiryMs = 86_400_000;
const workers = 2;

export function createSender(deps: SenderDeps): Sender {
  const { db, secrets, reporter, clock = systemClock } = deps;
  return createOutboxSender(
    {
      name: 'alert notifications',
      failure: 'alerts can not be sent',
      table: 'alert_channels',
      workers,
      async prepare() {
        await secrets.ready();
        return false;
      },
      claim: outbox.claimChannel,
      next: (from, channel) => outbox.nextNotification(from, channel.id),
      attempt: (channel, due, signal) => attempt(deps, channel, due, signal),
    },
    { db, clock, reporter },
  );
}

/** One attempt. Returns true when the receiver accepted it, so that the next one may follow. */
async function attempt(
  deps: SenderDeps,
  channel: outbox.ClaimedChannel,
  due: outbox.DueNotification,
  signal: AbortSignal,
): Promise<boolean> {
  const episode = due.episodeId === null ? null : await readEpisode(deps.db(), due.episodeId);
  const { publicId, transition, createdAtMs } = due;
  const notification = makeNotification(publicId, transition, episode, createdAtMs, deps.consoleUrl);
  const error =
    channel.kind === 'email'
      ? await mail(deps, channel, notification)
      : await post(deps, channel, notification, due.nowMs, signal);
  // An attempt that was cancelled by a stop is repeated.
  if (signal.aborted && error !== null) return false;
  const pauseMs = backoffMs(retry, due.attempts + 1);
  const isExpired = due.nowMs + pauseMs > createdAtMs + expiryMs;
  const retrySeconds = isExpired || transition === 'test' ? null : pauseMs / 1000;
  if (error) {
    const fields = { channel: channel.name, notification: publicId, attempt: due.attempts + 1, why: error };
    deps.reporter.warn('an alert was not delivered', fields);
  }
  return (await outbox.recordAttempt(deps.db(), channel, due.id, { error, retrySeconds })) && error === null;
}

async function mail(
  deps: SenderDeps,
  channel: outbox.ClaimedChannel,
  notification: Notification,
): Promise<string | null> {
  if (!deps.mail) return 'no mail server is configured: SVC_SMTP_URL is empty';
  return sendMail(deps.mail, channel.recipients, notification);
}

async function post(
  deps: SenderDeps,
  channel: outbox.ClaimedChannel,
  notification: Notification,
  nowMs: number,
  signal: AbortSignal,
): Promise<string | null> {
  const body = JSON.stringify(notification.body);
  let secret: Buffer;
  try {
    secret = await deps.secrets.open(deps.db(), channelSecret, channel.id, channel.sealedSecret);
  } catch (error) {
    deps.reporter.error('an alert can not be signed', { channel: channel.name, error: describeError(error) });
    return 'the signing secret can not be decrypted; delete the channel and add it again';
  }
  const headers = signDelivery([secret], notification.id, Math.floor(nowMs / 1000), body);
  const options = { rules: deps.rules, resolve: resolveByDns, signal };
  return (await postDelivery(channel.url!, headers, body, options)).error;
}
