/** Rules and actions in words. */
import type { Action, Rule, RuleKind, RuleMode } from '#monitor/hand-off/index.ts';
import {
  badge,
  type Content,
  formatBitRate,
  formatCount,
  formatDuration,
  html,
  type Tone,
} from '#service-kit/pages/index.ts';

export const kindNames: Readonly<Record<RuleKind, string>> = {
  command: 'Command',
  webhook: 'Webhook',
  blackhole: 'BGP blackhole',
  flowspec: 'BGP Flowspec',
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
  return `announce ${kind === 'blackhole' ? 'a blackhole' : 'filters'} to ${target.peer}`;
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

/** The state, marked where it is a dry run. */
export function actionBadge({ state, isDryRun, lastError, startedAtMs }: Action): Content {
  const text = state === 'ended' && startedAtMs === null ? 'not started' : state;
  const tone = lastError !== null && state === 'ending' ? 'bad' : states[state];
  return [badge(tone, text), isDryRun && html` ${badge('info', 'dry run')}`];
}

/** When an action ends, or why it does not. */
export function endText(action: Action, nowMs: number): string {
  const { state, releasedAtMs, holdSeconds } = action;
  if (state === 'active' && releasedAtMs === null) return `${formatDuration(holdSeconds)} after the recovery`;
  if (state === 'active' && releasedAtMs !== null)
    return `in ${formatDuration(Math.max(0, (releasedAtMs + holdSeconds * 1000 - nowMs) / 1000))}`;
  return state === 'ending' ? 'now' : '';
}
