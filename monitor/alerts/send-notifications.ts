/**
 * Delivers notifications of the outbox at least once, each under a stable id, in the order of each channel.
 *
 * Any number of processes may run it. A process that dies after sending and before recording sends again under the same
 * id.
 */

import { type Clock, systemClock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { createOutboxSender, type OutboxSender } from '#service-kit/outbox/index.ts';
import { postDelivery, resolveByDns } from '#service-kit/webhooks/index.ts';
import { channelKindOf, type Sent } from './channels/index.ts';
import { channelSecret } from './channels-store.ts';
import { readEpisode } from './describe-episode.ts';
import type { AlertsDeps } from './index.ts';
import { makeNotification, type Notification } from './notification.ts';
import * as outbox from './outbox-store.ts';

type SenderDeps = Pick<AlertsDeps, 'db' | 'secrets' | 'reporter' | 'rules' | 'mail' | 'consoleUrl'> & {
  clock?: Clock;
};

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
  const { publicId: id, transition, openedId, opened, createdAtMs } = due;
  const head = { id, transition, openedId, opened: transition === 'resolved' ? opened : null, createdAtMs };
  const { error, reference } = await send(
    deps,
    channel,
    makeNotification(head, episode, deps.consoleUrl),
    due,
    signal,
  );
  // An attempt that was cancelled by a stop is repeated.
  if (signal.aborted && error !== null) return false;
  const pauseMs = backoffMs(retry, due.attempts + 1);
  const isExpired = due.nowMs + pauseMs > createdAtMs + expiryMs;
  const retrySeconds = isExpired || transition === 'test' ? null : pauseMs / 1000;
  if (error) {
    const fields = { channel: channel.name, notification: id, attempt: due.attempts + 1, why: error };
    deps.reporter.warn('an alert was not delivered', fields);
  }
  const outcome = { error, retrySeconds, reference };
  return (await outbox.recordAttempt(deps.db(), channel, due.id, outcome)) && error === null;
}

async function send(
  deps: SenderDeps,
  channel: outbox.ClaimedChannel,
  notification: Notification,
  { nowMs }: outbox.DueNotification,
  signal: AbortSignal,
): Promise<Sent> {
  const kind = channelKindOf(channel.kind);
  if (!kind) return { error: 'this program does not know the kind of this channel' };
  let secret: Buffer | null = null;
  try {
    if (channel.sealedSecret)
      secret = await deps.secrets.open(deps.db(), channelSecret, channel.id, channel.sealedSecret);
  } catch (error) {
    deps.reporter.error('the secret of a channel can not be decrypted', {
      channel: channel.name,
      error: describeError(error),
    });
    return { error: 'its secret can not be decrypted; delete the channel and add it again' };
  }
  const secretField = kind.fields.find(({ isSecret }) => isSecret);
  const settings =
    secretField && secret ? { ...channel.settings, [secretField.name]: secret.toString() } : channel.settings;
  const rules = kind.isOwnNetwork ? { allowPrivate: true } : deps.rules;
  return kind.send(settings, notification, {
    ...{ mail: deps.mail, signingSecret: kind.isSigned ? secret : null, nowMs, signal },
    request: (url, request) => postDelivery(url, request, { rules, resolve: resolveByDns, signal }),
  });
}
