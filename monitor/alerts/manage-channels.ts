/** Changes of channels and episodes by operators. */
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import { formatSecret, mintSecret, parseEndpointUrl, type TargetRules } from '#service-kit/webhooks/index.ts';
import { channelSecret, insertChannel, nextChannelId } from './channels-store.ts';
import { enqueueTest, lockAndCountTests } from './outbox-store.ts';

export interface ChannelInput {
  kind: 'email' | 'webhook';
  name: string;
  /** Mail addresses, separated by commas, spaces or lines. */
  recipients?: string | undefined;
  url?: string | undefined;
}

const channelsMax = 20;
const recipientsMax = 20;
/** A test may reach a mail server or receiver of another company. */
const testsMax = 5;
const testWindowSeconds = 600;
const addressShape = /^[^\s@<>",;:\\()[\]]{1,64}@[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i;

/**
 * The secret of a webhook, returned only here; null for mail. Throws `alerts.invalid`, `webhooks.invalid`,
 * `alerts.limit`.
 */
export async function addChannel(
  db: Queryable,
  secrets: Secrets,
  rules: TargetRules,
  actor: Actor,
  input: ChannelInput,
): Promise<{ secret: string | null }> {
  requireOperator(actor);
  const name = oneLine(input.name);
  if (name.length === 0 || name.length > 80) throw invalid("A channel's name has 1 to 80 characters.");
  const isMail = input.kind === 'email';
  const secret = isMail ? null : mintSecret();
  const channel = {
    kind: input.kind,
    name,
    recipients: isMail ? parseRecipients(input.recipients ?? '') : [],
    url: isMail ? null : parseEndpointUrl(input.url ?? '', rules),
  };
  const { kind, recipients, url } = channel;
  await secrets.ready();
  const channelId = await recorded(
    db,
    actor,
    (id) => ({
      operation: 'channel.add',
      subject: { kind: 'channel', id, name },
      after: { kind, recipients, url },
    }),
    async (trx: Queryable) => {
      const id = await nextChannelId(trx);
      const sealedSecret = secret && (await secrets.seal(trx, channelSecret, id, secret));
      return (await insertChannel(trx, { ...channel, id, sealedSecret }, channelsMax)) ? id : null;
    },
  );
  if (channelId === null) {
    throw new CodedError('alerts.limit', `There are ${channelsMax} channels already. Delete one first.`);
  }
  return { secret: secret && formatSecret(secret) };
}

/** Queues a test of a channel. Returns false when there is no such channel. Throws `alerts.test_limit`. */
export async function sendTest(trx: Queryable, channelId: number): Promise<boolean> {
  if ((await lockAndCountTests(trx, channelId, testWindowSeconds)) >= testsMax) {
    throw new CodedError(
      'alerts.test_limit',
      `This channel had ${testsMax} tests within ten minutes. Wait a few minutes, then try again.`,
    );
  }
  return enqueueTest(trx, channelId);
}

function parseRecipients(text: string): string[] {
  const recipients = [...new Set(text.split(/[\s,;]+/).filter((part) => part !== ''))];
  const wrong = recipients.find((one) => !addressShape.test(one));
  if (wrong !== undefined) throw invalid(`Not a mail address: ${wrong.slice(0, 80)}.`);
  if (recipients.length === 0) throw invalid('Give at least one mail address.');
  if (recipients.length > recipientsMax)
    throw invalid(`A channel has at most ${recipientsMax} mail addresses.`);
  return recipients;
}

function invalid(message: string): CodedError {
  return new CodedError('alerts.invalid', message);
}
