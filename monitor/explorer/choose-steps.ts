/** From a query's range to the seconds that are read, and to the length of a step. */
import { CodedError } from '#common/errors/index.ts';
import { type Query, stepsMax } from './query.ts';

/** Steps that a range of at most so many seconds gets by itself: what is kept is read as it is kept. */
const automatic = [
  [6 * 3600, 60],
  [26 * 3600, 600],
  [15 * 86_400, 3600],
  [62 * 86_400, 21_600],
] as const;

export interface Steps {
  from: number;
  to: number;
  stepSeconds: number | null;
}

/** `isKeptByHour`: nothing between minutes and hours is kept of what is asked. A range up to now ends with the step that holds now, as on every chart. Throws `explorer.too_many_steps`. */
export function chooseSteps(
  query: Pick<Query, 'range' | 'step'>,
  nowSecond: number,
  isKeptByHour = false,
): Steps {
  const { range, step } = query;
  const seconds = secondsOf(query);
  const stepSeconds = step === 'auto' ? automaticStep(seconds, isKeptByHour) : step;
  const unit = stepSeconds ?? 60;
  const to = 'lastSeconds' in range ? Math.ceil(nowSecond / unit) * unit : range.to;
  const from = 'lastSeconds' in range ? to - range.lastSeconds : range.from;
  if (stepSeconds !== null && (to - from) / stepSeconds > stepsMax)
    throw new CodedError(
      'explorer.too_many_steps',
      `A range of ${Math.round(seconds / 60)} minutes has more than ${stepsMax} steps of ${stepSeconds} seconds. Use step=auto, a longer step or a shorter range.`,
    );
  return { from, to, stepSeconds };
}

const secondsOf = ({ range }: Pick<Query, 'range'>) =>
  'lastSeconds' in range ? range.lastSeconds : range.to - range.from;

function automaticStep(seconds: number, isKeptByHour: boolean): number {
  const chosen = automatic.find(([most]) => seconds <= most)?.[1] ?? 86_400;
  return isKeptByHour && chosen > 60 ? Math.max(chosen, 3600) : chosen;
}

/**
 * The steps of a picture as small as a cell of a table: never shorter than those that are kept of everything, so that it does not cost
 * reading the minutes of a day.
 */
export function courseStep({ range, step }: Pick<Query, 'range' | 'step'>): Query['step'] {
  return typeof step === 'number' ? Math.max(step, automaticStep(secondsOf({ range }), true)) : step;
}

/** Starts of the steps that touch a range, unix milliseconds. */
export function listTimes({ from, to, stepSeconds }: Steps): number[] {
  if (stepSeconds === null) return [];
  const first = Math.floor(from / stepSeconds) * stepSeconds;
  const count = Math.ceil((to - first) / stepSeconds);
  return Array.from({ length: count }, (_, i) => (first + i * stepSeconds) * 1000);
}
