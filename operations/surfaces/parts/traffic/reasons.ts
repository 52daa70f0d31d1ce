/** Why a time has no values, in words: for the table of minutes, the notes of a chart and the ribbon under it. */
import { lossOf, type MinuteReason } from '#contracts/minute-reasons.ts';
import { keptMs } from '#contracts/retention.ts';
import type { StepRow } from '#operations/protect/index.ts';
import type { ServerAction } from '#operations/views/index.ts';

/** What a chart says beside the value of a step that was not observed as a whole; undefined: nothing. */
export function lossNote(reason: MinuteReason | null): string | undefined {
  return lossOf(reason)?.short;
}

/** A time without values, or with a part of them. */
export interface Gap {
  fromMs: number;
  toMs: number;
  text: string;
  /** The same as a sentence, where there is more to say. */
  why?: string | undefined;
  tone: 'warn' | 'neutral';
}

export interface GapFacts {
  steps: readonly Pick<StepRow, 'at' | 'minutes' | 'reason'>[];
  range: { fromMs: number; toMs: number; stepSeconds: number };
  /** When the server, or the first of several, was created, or was first observed. */
  createdMs: number;
  /** What is said of the time before that. Default: of one server. */
  before?: string;
  /** Times at which the server was switched off, in time order. */
  off: readonly { fromMs: number; toMs: number }[];
  nowMs: number;
  /** Default: of minutes. */
  pace?: Pace;
}

/** What a chart is made of. */
export interface Pace {
  /** How long after its end it is there for certain. */
  deliveryMs: number;
  /** What is said of one that is missing without a known reason. */
  missing: Pick<Gap, 'text' | 'tone'>;
}

/** Months are up to three days shorter in a row. */
const keptForMs = keptMs('traffic') - 3 * 86_400_000;
/** A minute arrives one to two minutes after its end. */
const byMinutes: Pace = { deliveryMs: 180_000, missing: { text: 'no observation', tone: 'warn' } };
/** A bucket of ten seconds arrives within 15 seconds; of an address without packets there is none. */
export const byLiveBuckets: Pace = {
  deliveryMs: 20_000,
  missing: { text: 'no packets, or not observed', tone: 'neutral' },
};

/** The times of a range that were not observed as a whole, each with its reason; neighbours of one reason are one. */
export function gapsOf(facts: GapFacts): Gap[] {
  const { range, steps } = facts;
  const stepMs = range.stepSeconds * 1000;
  const byTime = new Map(steps.map((step) => [step.at.getTime(), step]));
  const gaps: Gap[] = [];
  for (let atMs = range.fromMs; atMs < range.toMs; atMs += stepMs) {
    const said = reasonAt(facts, atMs, atMs + stepMs, byTime.get(atMs));
    if (said === null) continue;
    const last = gaps.at(-1);
    if (last && last.toMs === atMs && last.text === said.text) last.toMs = atMs + stepMs;
    else gaps.push({ fromMs: atMs, toMs: atMs + stepMs, ...said });
  }
  return gaps;
}

type Said = Pick<Gap, 'text' | 'why' | 'tone'>;

function reasonAt(
  { createdMs, before = 'before the server was created', off, nowMs, pace = byMinutes }: GapFacts,
  fromMs: number,
  toMs: number,
  step: GapFacts['steps'][number] | undefined,
): Said | null {
  const { deliveryMs, missing } = pace;
  const loss = lossOf(step?.reason ?? null);
  const known: Said | null = loss ? { text: loss.short, why: loss.long, tone: 'warn' } : null;
  if (step !== undefined && step.minutes > 0) return known;
  const neutral = (text: string): Said => ({ text, tone: 'neutral' });
  // A first step of which little was left, or too little to be delivered, is no fault.
  if (fromMs < createdMs && toMs - createdMs < deliveryMs) return neutral(before);
  if (fromMs > nowMs) return neutral('not yet');
  if (toMs > nowMs) return neutral('in progress');
  if (known !== null) return known;
  if (off.some((each) => each.fromMs <= fromMs && each.toMs >= toMs)) return neutral('server switched off');
  if (nowMs - toMs < deliveryMs) return neutral('not delivered yet');
  if (nowMs - toMs > keptForMs) return neutral('kept no longer');
  return missing;
}

/** When a server was off, by its finished actions (newest first) and its present state. */
export function offTimes(
  actions: readonly ServerAction[],
  present: { isOff: boolean; sinceMs: number; nowMs: number },
): { fromMs: number; toMs: number }[] {
  const times: { fromMs: number; toMs: number }[] = [];
  let offSince: number | null = null;
  for (const action of actions.toReversed()) {
    if (action.status !== 'success' || action.finishedAt === null) continue;
    const atMs = Date.parse(action.finishedAt);
    const isStop =
      action.command === 'stop' || (action.command === 'shutdown' && action.outcome !== 'signal_sent');
    if (isStop) offSince ??= atMs;
    else if (action.command === 'start' && offSince !== null) {
      times.push({ fromMs: offSince, toMs: atMs });
      offSince = null;
    }
  }
  if (present.isOff) times.push({ fromMs: offSince ?? present.sinceMs, toMs: present.nowMs });
  return times;
}
