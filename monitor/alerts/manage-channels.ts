/** Changes of channels by operators. */

import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { formatSecret, mintSecret, parseEndpointUrl, type TargetRules } from '#service-kit/webhooks/index.ts';
import { type ChannelField, type ChannelKind, channelKindOf, invalidField } from './channels/index.ts';
import * as store from './channels-store.ts';
import { alertKinds } from './episode.ts';
import type { AlertsDeps } from './index.ts';
import { enqueueTest, lockAndCountTests } from './outbox-store.ts';

/** As typed. */
export interface ChannelInput {
  kind: string;
  name: string;
  /** Of the kind's fields; an empty secret of a channel that is there stays as it is. */
  settings: Readonly<Record<string, string | undefined>>;
  /** Empty or absent: all. */
  siteIds?: readonly number[];
  kinds?: readonly string[];
  isCriticalOnly?: boolean;
  /** `22:00` and `07:00`, and a time zone of IANA; all empty or absent: none. */
  quietFrom?: string;
  quietTo?: string;
  quietZone?: string;
}

type Deps = Pick<AlertsDeps, 'db' | 'secrets' | 'rules'>;

const channelsMax = 20;
const nameLengthMax = 80;
const valueLengthMax = 20_000;
/** A test may reach a mail server or receiver of another company. */
const testsMax = 5;
const testWindowSeconds = 600;
const zoneAdvice = 'Choose the time zone of the quiet hours, such as Europe/Berlin.';

/**
 * The signing secret of a new webhook, returned only here; null for other kinds. Throws `alerts.invalid`,
 * `webhooks.invalid`, `alerts.limit`.
 */
export async function addChannel(
  { db, secrets, rules }: Deps,
  actor: Actor,
  input: ChannelInput,
): Promise<{ secret: string | null }> {
  requireOperator(actor);
  const { channel, secret, signing } = parse(input, rules, null);
  await requireTimeZone(db(), channel);
  await secrets.ready();
  const channelId = await recorded(
    db(),
    actor,
    (id) => ({
      operation: 'channel.add',
      subject: { kind: 'channel', id, name: channel.name },
      after: channel,
    }),
    async (trx: Queryable) => {
      const id = await store.nextChannelId(trx);
      const sealedSecret = secret && (await secrets.seal(trx, store.channelSecret, id, secret));
      return (await store.insertChannel(trx, { ...channel, id, sealedSecret }, channelsMax)) ? id : null;
    },
  );
  if (channelId === null) {
    throw new CodedError('alerts.limit', `There are ${channelsMax} channels already. Delete one first.`);
  }
  return { secret: signing && formatSecret(signing) };
}

/** Changes everything but the kind. Returns false when there is no such channel. Throws `alerts.invalid`, `webhooks.invalid`. */
export async function changeChannel(
  { db, secrets, rules }: Deps,
  actor: Actor,
  channelId: number,
  input: Omit<ChannelInput, 'kind'>,
): Promise<boolean> {
  requireOperator(actor);
  const before = (await store.listChannels(db())).find(({ id }) => id === channelId);
  if (!before) return false;
  const { channel, secret } = parse({ ...input, kind: before.kind }, rules, before);
  await requireTimeZone(db(), channel);
  await secrets.ready();
  const { id, kind, name, settings, siteIds, kinds, isCriticalOnly, quiet } = before;
  const entry = {
    operation: 'channel.change',
    subject: { kind: 'channel', id, name },
    before: { kind, name, settings, siteIds, kinds, isCriticalOnly, quiet },
    after: { ...channel, ...(secret ? { hasNewSecret: true } : {}) },
  };
  return recorded(db(), actor, entry, async (trx) => {
    const sealedSecret = secret && (await secrets.seal(trx, store.channelSecret, id, secret));
    return store.updateChannel(trx, { ...channel, id, sealedSecret });
  });
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

/** `secret` is what is sealed, null for none or the present one; `signing` is a new signing secret. */
function parse(input: ChannelInput, rules: TargetRules, before: store.Channel | null) {
  const kind = channelKindOf(input.kind);
  if (!kind) throw invalidField('Choose a kind of channel.');
  const name = oneLine(input.name);
  if (name.length === 0 || name.length > nameLengthMax)
    throw invalidField(`A channel's name has 1 to ${nameLengthMax} characters.`);
  const settings: Record<string, string> = {};
  let secret: string | null = null;
  for (const field of kind.fields) {
    const typed = (input.settings[field.name] ?? '').trim() || (field.preset ?? '');
    if (typed === '') {
      if (field.isOptional || (field.isSecret && before)) continue;
      throw invalidField(`Fill in: ${field.label}.`);
    }
    const value = parseField(kind, field, typed, rules);
    if (field.isSecret) secret = value;
    else settings[field.name] = value;
  }
  const signing = kind.isSigned && !before ? mintSecret() : null;
  const channel = { kind: input.kind, name, settings, ...parseRouting(input) };
  return { channel, secret: signing ?? (secret === null ? null : Buffer.from(secret)), signing };
}

function parseField(kind: ChannelKind, field: ChannelField, typed: string, rules: TargetRules): string {
  if (typed.length > valueLengthMax) throw invalidField(`Too long: ${field.label}.`);
  const text = field.kind === 'textarea' ? typed : oneLine(typed);
  const value =
    field.kind === 'url' ? parseEndpointUrl(text, kind.isOwnNetwork ? { allowPrivate: true } : rules) : text;
  return field.parse ? field.parse(value) : value;
}

function parseRouting(input: ChannelInput): store.Routing {
  const { siteIds = [], kinds = [], isCriticalOnly = false } = input;
  const unknown = kinds.find((kind) => !Object.hasOwn(alertKinds, kind));
  if (unknown !== undefined) throw invalidField('Choose kinds of alerts from the list.');
  return {
    siteIds: siteIds.length > 0 ? [...siteIds] : null,
    kinds: kinds.length > 0 ? [...kinds] : null,
    isCriticalOnly,
    quiet: parseQuiet(input),
  };
}

function parseQuiet({ quietFrom = '', quietTo = '', quietZone = '' }: ChannelInput): store.Routing['quiet'] {
  const [from, to, zone] = [quietFrom, quietTo, quietZone].map((text) => text.trim()) as [
    string,
    string,
    string,
  ];
  if (from === '' && to === '') return null;
  const [fromMinute, toMinute] = [parseTime(from), parseTime(to)];
  if (fromMinute === toMinute) throw invalidField('Quiet hours begin and end at different times.');
  if (!isTimeZone(zone)) throw invalidField(zoneAdvice);
  return { from: fromMinute, to: toMinute, zone };
}

function parseTime(text: string): number {
  const [, hour, minute] = /^(\d{1,2}):(\d{2})$/.exec(text) ?? [];
  if (hour === undefined || Number(hour) > 23 || Number(minute) > 59)
    throw invalidField('Quiet hours need both times, such as 22:00 and 07:00.');
  return Number(hour) * 60 + Number(minute);
}

/** Abbreviations and offsets are none, because they know no summer time. */
function isTimeZone(name: string): boolean {
  return name === 'UTC' || Intl.supportedValuesOf('timeZone').includes(name);
}

/** A zone that Node.js knows and this PostgreSQL does not would keep every alert from being told. */
async function requireTimeZone(db: Queryable, { quiet }: store.Routing): Promise<void> {
  if (quiet && !(await store.knowsTimeZone(db, quiet.zone))) throw invalidField(zoneAdvice);
}
