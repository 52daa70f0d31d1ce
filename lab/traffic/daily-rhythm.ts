/** How much of something goes on at a UTC hour. Every rhythm has a mean of 1 over the day. */

/** `day` peaks at 14:00 UTC, `evening` at 20:00, `night` between 01:00 and 04:00; `steady` never changes. */
export type Rhythm = 'day' | 'evening' | 'night' | 'steady';

const hourMs = 3_600_000;
const peaks = { day: 14, evening: 20 } as const;
/** The rest of the day still has a little of what runs at night, such as a backup by hand. */
const nightHours = { from: 1, to: 4, factor: 5, otherwise: 3 / 7 } as const;

/** The factor at this time; `depth` from 0 to 1 is how far a wave rises above its mean and falls below it. */
export function rhythmAt(rhythm: Rhythm, unixMs: number, depth = 0.7): number {
  if (rhythm === 'steady') return 1;
  const hour = (unixMs / hourMs) % 24;
  if (rhythm === 'night') {
    const isNight = hour >= nightHours.from && hour < nightHours.to;
    return isNight ? nightHours.factor : nightHours.otherwise;
  }
  return 1 + depth * Math.cos((2 * Math.PI * (hour - peaks[rhythm])) / 24);
}
