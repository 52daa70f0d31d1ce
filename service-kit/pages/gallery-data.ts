/** Time series of the gallery, the same for the same times, so that two pictures can be compared. */
import type { ChartData } from './chart.ts';
import type { Range } from './range.ts';

/** A day's rhythm with some noise, two gaps and one attack; the same for the same times. */
export function trafficOf(nowMs: number, range: Range): ChartData {
  const stepMs = range.stepSeconds * 1000;
  const timesMs: number[] = [];
  for (let ms = range.fromMs; ms < Math.min(range.toMs, nowMs); ms += stepMs) timesMs.push(ms);
  const count = timesMs.length;
  const attack = { from: Math.floor(count * 0.62), to: Math.floor(count * 0.74) };
  const isGap = (index: number) =>
    (index > count * 0.2 && index < count * 0.25) || (count > 50 && index === Math.floor(count * 0.4));
  const noise = (seed: number) => (Math.sin(seed * 12.9898) * 43_758.5453) % 1;
  const wave = (ms: number, size: number) =>
    size * (1 + 0.35 * Math.sin(ms / 5_200_000) + 0.2 * noise(ms / 60_000));
  const isAttack = (index: number) => index >= attack.from && index < attack.to;
  return {
    timesMs,
    stepMs,
    range,
    series: [
      {
        label: 'In',
        role: 'in',
        values: timesMs.map((ms, index) =>
          isGap(index) ? null : Math.round(wave(ms, 11e6) * (isAttack(index) ? 4.2 : 1)),
        ),
      },
      {
        label: 'Out',
        role: 'out',
        values: timesMs.map((ms, index) => (isGap(index) ? null : Math.round(wave(ms + 9e5, 19e6)))),
      },
      {
        label: 'Suspected attack',
        role: 'attack',
        values: timesMs.map((ms, index) => (isAttack(index) ? Math.round(wave(ms, 11e6) * 3) : null)),
      },
      {
        label: 'Expected in',
        role: 'in',
        isExpected: true,
        values: timesMs.map((ms) => Math.round(11e6 * (1 + 0.35 * Math.sin(ms / 5_200_000)))),
      },
    ],
    areas: [{ fromMs: timesMs[attack.from] ?? nowMs, toMs: timesMs[attack.to], label: 'Attack' }],
  };
}

/** Eight lines, each with a rhythm of its own. */
export function applicationsOf(nowMs: number, range: Range): ChartData {
  const stepMs = range.stepSeconds * 1000;
  const timesMs: number[] = [];
  for (let ms = range.fromMs; ms < Math.min(range.toMs, nowMs); ms += stepMs) timesMs.push(ms);
  const names = ['example.com', 'debian.org', 'github.com', 'DNS', 'SSH', 'wikipedia.org', 'NTP', 'other'];
  return {
    timesMs,
    stepMs,
    series: names.map((label, index) => ({
      label,
      values: timesMs.map((ms) =>
        Math.round((8 - index) * 4e5 * (1.2 + Math.sin(ms / (3e6 + index * 7e5) + index))),
      ),
    })),
  };
}
