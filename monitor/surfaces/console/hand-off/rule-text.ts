/** Rules and actions in words. */

import { type Static, Type } from 'typebox';
import type { CodedError } from '#common/errors/index.ts';
import { packetBytesMax } from '#contracts/sensor-api/filter.ts';
import type { Action, Rule, RuleInput, RuleKind, RuleMode } from '#monitor/hand-off/index.ts';
import {
  badge,
  type Content,
  formatBitRate,
  formatCount,
  formatDuration,
  html,
  type Tone,
} from '#service-kit/pages/index.ts';
import { faultText } from '../frame.ts';

export const kindNames: Readonly<Record<RuleKind, string>> = {
  command: 'Command',
  webhook: 'Webhook',
  blackhole: 'BGP blackhole',
  flowspec: 'BGP Flowspec',
  filter: 'Filter at hypervisors',
};

const modes: Readonly<Record<RuleMode, { tone: Tone; text: string }>> = {
  off: { tone: 'neutral', text: 'off' },
  dry_run: { tone: 'info', text: 'dry run' },
  on: { tone: 'warn', text: 'on' },
};

export const modeBadge = (mode: RuleMode): Content => badge(modes[mode].tone, modes[mode].text);

/** `post to https://…`, `run block.sh`, `announce a blackhole to 64512@127.0.0.1:179`. */
export function targetText({ kind, target }: Pick<Rule, 'kind' | 'target'>): string {
  if (kind === 'webhook') return `post to ${target.url}`;
  if (kind === 'command') return `run ${target.command}`;
  if (kind === 'filter') return filterText(target);
  return `announce ${kind === 'blackhole' ? 'a blackhole' : 'filters'} to ${target.peer}`;
}

/** `drop at the uplinks of hypervisors after 60 s of counting, for at most 1 day`. */
function filterText({ countSeconds, maxSeconds, lengthMin, lengthMax }: Rule['target']): string {
  const from =
    countSeconds === undefined
      ? 'once an operator lets it'
      : countSeconds === 0
        ? 'at once'
        : `after ${formatDuration(countSeconds)} of counting`;
  const lengths =
    lengthMin === undefined && lengthMax === undefined
      ? ''
      : ` packets of ${formatCount(lengthMin ?? 0)} to ${formatCount(lengthMax ?? packetBytesMax)} bytes`;
  return `drop${lengths} at the uplinks of hypervisors ${from}, for at most ${formatDuration(maxSeconds ?? 0)}`;
}

const directions = { inbound: 'on', outbound: 'by', both: 'on or by' } as const;

/** `attacks on these addresses of at least 20,000 packets/s`. */
export function conditionText({ direction, minPps, minBps }: Rule): string {
  const peaks = [
    minPps !== null && `${formatCount(minPps)} packets/s`,
    minBps !== null && formatBitRate(minBps),
  ].filter((one) => one !== false);
  const strong = peaks.length > 0 ? ` with a peak of at least ${peaks.join(' or ')}` : ', however strong';
  return `attacks ${directions[direction]} these addresses${strong}`;
}

const states: Readonly<Record<Action['state'], Tone>> = {
  waiting: 'info',
  active: 'warn',
  ending: 'info',
  ended: 'neutral',
  failed: 'bad',
};

/** True for a filter that counts what it would drop. */
export const isCounting = ({ kind, state, isDryRun, dropAtMs }: Action, nowMs: number): boolean =>
  kind === 'filter' && state === 'active' && (isDryRun || dropAtMs === null || dropAtMs > nowMs);

/** The state, marked where it is a dry run, or counts. */
export function actionBadge(action: Action, nowMs: number): Content {
  const { state, isDryRun, lastError, startedAtMs } = action;
  const text = state === 'ended' && startedAtMs === null ? 'not started' : state;
  const tone = lastError !== null && state === 'ending' ? 'bad' : states[state];
  return [
    badge(tone, isCounting(action, nowMs) ? 'counts' : text),
    isDryRun && html` ${badge('info', 'dry run')}`,
  ];
}

/** When an action ends, or why it does not. */
export function endText(action: Action, nowMs: number): string {
  const { state, releasedAtMs, holdSeconds } = action;
  if (state === 'active' && releasedAtMs === null) return `${formatDuration(holdSeconds)} after the recovery`;
  if (state === 'active' && releasedAtMs !== null)
    return `in ${formatDuration(Math.max(0, (releasedAtMs + holdSeconds * 1000 - nowMs) / 1000))}`;
  return state === 'ending' ? 'now' : '';
}

// Forms of hand-off: their bodies, and refusals of them.

export const Revision = { revision: Type.String({ pattern: '^[0-9]{1,15}$' }) };

const text = (maxLength: number) => Type.String({ maxLength });
export const RuleBody = Type.Object({
  ...Revision,
  name: text(200),
  kind: text(20),
  prefixes: text(32_768),
  direction: text(20),
  min_pps: text(40),
  min_bps: text(40),
  hold_seconds: text(20),
  url: Type.Optional(text(1000)),
  command: Type.Optional(text(200)),
  peer: Type.Optional(text(200)),
  next_hop4: Type.Optional(text(64)),
  next_hop6: Type.Optional(text(64)),
  count_seconds: Type.Optional(text(20)),
  max_seconds: Type.Optional(text(20)),
  length_min: Type.Optional(text(20)),
  length_max: Type.Optional(text(20)),
});
export type RuleBody = Static<typeof RuleBody>;

export function inputOf(body: RuleBody): RuleInput {
  return {
    name: body.name,
    kind: body.kind,
    prefixes: body.prefixes.split(/[\s,]+/),
    direction: body.direction,
    minPps: body.min_pps,
    minBps: body.min_bps,
    holdSeconds: body.hold_seconds,
    url: body.url,
    command: body.command,
    peer: body.peer,
    nextHop4: body.next_hop4,
    nextHop6: body.next_hop6,
    countSeconds: body.count_seconds,
    maxSeconds: body.max_seconds,
    lengthMin: body.length_min,
    lengthMax: body.length_max,
  };
}

/** A refused form. */
export interface Refused {
  message: string;
  fields: Readonly<Record<string, string>>;
  status: 409 | 422;
  typed: Readonly<Record<string, string | undefined>>;
}

/** The refusal of a form; any other error is thrown. */
export function refusalOf(error: unknown, typed: Refused['typed']): Refused {
  const message = faultText(error, 'hand_off.invalid', 'hand_off.changed');
  const { code, details } = error as CodedError;
  const fields = (details.fields ?? {}) as Record<string, string>;
  return {
    message: Object.keys(fields).length > 0 ? 'Nothing was saved. Correct the marked fields.' : message,
    fields,
    status: code === 'hand_off.changed' ? 409 : 422,
    typed,
  };
}
