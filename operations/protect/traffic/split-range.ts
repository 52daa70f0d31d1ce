/**
 * Parts of a range by what they are read from: whole hours from hours, whole tens of minutes from tens, what is left from
 * minutes. Every part says what its minutes say, so the answer is the same for any split, at another price.
 */

export type Grain = 'minutes' | 'tens' | 'hours';

export interface RangePart {
  grain: Grain;
  fromMs: number;
  toMs: number;
}

export const grainMs: Readonly<Record<Grain, number>> = { minutes: 60_000, tens: 600_000, hours: 3_600_000 };
const coarsestFirst = ['hours', 'tens', 'minutes'] as const;

/** The parts in order of time; none is of a coarser grain than `most`, in which a step has to lie. */
export function splitRange({ fromMs, toMs }: { fromMs: number; toMs: number }, most: Grain): RangePart[] {
  if (toMs <= fromMs) return [];
  const grain = coarsestFirst[coarsestFirst.indexOf(most)]!;
  if (grain === 'minutes') return [{ grain, fromMs, toMs }];
  const finer = coarsestFirst[coarsestFirst.indexOf(grain) + 1]!;
  const length = grainMs[grain];
  const [first, last] = [Math.ceil(fromMs / length) * length, Math.floor(toMs / length) * length];
  if (last <= first) return splitRange({ fromMs, toMs }, finer);
  return [
    ...splitRange({ fromMs, toMs: first }, finer),
    { grain, fromMs: first, toMs: last },
    ...splitRange({ fromMs: last, toMs }, finer),
  ];
}

/** The coarsest grain that steps of this length are made of. */
export function grainOfStep(stepSeconds: number): Grain {
  if (stepSeconds % 3600 === 0) return 'hours';
  return stepSeconds % 600 === 0 ? 'tens' : 'minutes';
}
