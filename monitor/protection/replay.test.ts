// Slow: replays months of minutes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  fastTriggerRatio,
  type Metric,
  metrics,
  type ThresholdSet,
  type ThresholdValues,
  thresholdDefaults,
} from '#contracts/sensor-api/detection.ts';
import { type MinuteMaxima, replay } from './replay.ts';
import { propose } from './what-if.ts';

const off = Object.fromEntries(metrics.map((metric) => [metric, null])) as ThresholdValues;
const only = (values: Partial<ThresholdValues>): ThresholdSet => ({
  inbound: { ...off, ...values },
  outbound: off,
});
/** Judged so closely that the stored rates are those of an attack alone. */
const close = only({ pps: 1, syn_pps: 1, bps: 1 });

/** What a sensor stores of sixty seconds: by metric the largest second and the largest aligned ten. */
function maximaOf(seconds: Partial<Record<Metric, readonly number[]>>, minuteMs: number): MinuteMaxima {
  const of = (metric: Metric, by: (all: readonly number[]) => number) =>
    Math.round(by(seconds[metric] ?? [0]));
  const tens = (all: readonly number[]) =>
    Math.max(
      ...[0, 1, 2, 3, 4, 5].map((i) => all.slice(i * 10, i * 10 + 10).reduce((a, b) => a + b, 0) / 10),
    );
  return {
    minuteMs,
    direction: 'inbound',
    oneSecond: metrics.map((metric) => of(metric, (all) => Math.max(...all))),
    tenSeconds: metrics.map((metric) => of(metric, tens)),
  };
}

/** The rule of docs/detection.md, second by second: in which seconds it decides. */
function decisions(ratios: readonly number[]): number[] {
  return ratios.flatMap((ratio, at) => {
    const five = ratios.slice(Math.max(0, at - 4), at + 1);
    const mean = five.reduce((a, b) => a + Math.min(b, 2.5), 0) / 5;
    const isFast = five.slice(-3).filter((one) => one >= fastTriggerRatio).length >= 2;
    const isNormal = mean >= 1 && five.filter((one) => one >= 1).length >= 2;
    return ratio >= 0.3 && (isFast || isNormal) ? [at] : [];
  });
}

function randomFrom(seed: number) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test('what-if against the rule second by second: what is certain was decided, and what was decided is never missing, over 8,000 histories', () => {
  const random = randomFrom(11);
  const threshold = 10_000;
  const thresholds = only({ pps: threshold, syn_pps: threshold / 2 });
  let [decided, certain, missed, wrong] = [0, 0, 0, 0];
  for (let round = 0; round < 8_000; round += 1) {
    // Two minutes with bursts of random length, height and place, also across their border.
    const [pps, syn] = [new Array<number>(120).fill(0), new Array<number>(120).fill(0)];
    const level = threshold * random() * 1.2;
    for (let burst = Math.floor(random() * 4); burst >= 0; burst -= 1) {
      const from = Math.floor(random() * 120);
      const length = 1 + Math.floor(random() ** 2 * 14);
      const height = threshold * random() ** 2 * 6;
      const share = random();
      for (let i = from; i < Math.min(120, from + length); i += 1) {
        const rate = height * (0.6 + random() * 0.4);
        pps[i]! += Math.round(rate);
        syn[i]! += Math.round(rate * share * 0.6);
      }
    }
    for (let i = 0; i < 120; i += 1) pps[i]! += Math.round(level * random() * 0.4);
    const ratios = pps.map((rate, i) => Math.max(rate / threshold, syn[i]! / (threshold / 2)));
    const isDecided = decisions(ratios).length > 0;
    const minutes = [0, 1].map((i) =>
      maximaOf({ pps: pps.slice(i * 60, i * 60 + 60), syn_pps: syn.slice(i * 60, i * 60 + 60) }, i * 60_000),
    );
    const found = replay(minutes, thresholds, close);
    const isCertain = found.some((one) => one.isCertain);
    decided += Number(isDecided);
    certain += Number(isCertain);
    missed += Number(isDecided && found.length === 0);
    wrong += Number(isCertain && !isDecided);
  }
  assert.deepEqual({ missed, wrong }, { missed: 0, wrong: 0 });
  assert.ok(decided > 2000 && certain > decided * 0.2, `${decided} were decided, ${certain} of them certain`);
});

test('what-if calls nothing certain that the rule does not decide, over seconds just below what decides', () => {
  const random = randomFrom(5);
  const threshold = 10_000;
  const thresholds = only({ pps: threshold });
  let [undecided, wrong] = [0, 0];
  for (let round = 0; round < 10_000; round += 1) {
    // Bursts of one height, five seconds or more apart or side by side, over seconds just below the threshold.
    const burst = 1 + Math.floor(random() * 40) / 4;
    const low = [0, 0.24, 0.29, 0.99, 0.99, 0.99][Math.floor(random() * 6)]!;
    const first = Math.floor(random() * 10);
    const apart = 1 + Math.floor(random() * 6);
    const ratios = Array.from({ length: 60 }, (_, i) =>
      i >= 10 ? 0 : i === first || i === first + apart ? burst : random() < 0.9 ? low : 0.29,
    );
    const pps = ratios.map((ratio) => Math.floor(ratio * threshold));
    const isDecided = decisions(pps.map((rate) => rate / threshold)).length > 0;
    const isCertain = replay([maximaOf({ pps }, 0)], thresholds, close).some((one) => one.isCertain);
    undecided += Number(!isDecided);
    wrong += Number(isCertain && !isDecided);
  }
  assert.equal(wrong, 0);
  assert.ok(undecided > 1000, `${undecided} undecided`);
});

const steady = (rate: number, minute: number, length = 60) =>
  maximaOf({ pps: Array.from({ length: 60 }, (_, i) => (i < length ? rate : 0)) }, minute * 60_000);

test('a flood is certain, one second alone and ordinary traffic are not, and neighbouring minutes are one incident', () => {
  const thresholds = only({ pps: 1000 });
  const minutes = [
    steady(900, 0),
    steady(2500, 10, 30),
    steady(4000, 12),
    steady(1500, 40, 1),
    steady(5000, 60, 1),
    steady(3000, 100, 30),
  ];
  const found = replay(minutes, thresholds, close);
  assert.deepEqual(
    found.map((one) => [one.fromMs / 60_000, one.toMs / 60_000, one.isCertain, one.metric, one.ratio]),
    [
      [10, 13, true, 'pps', 4],
      [60, 61, false, 'pps', 5],
      [100, 101, true, 'pps', 3],
    ],
  );
  assert.deepEqual(replay(minutes, only({}), close), [], 'nothing is judged');
  assert.deepEqual(replay(minutes, only({ pps: 50_000 }), close), []);
});

test('rates below what sensors looked at closely may hold ordinary traffic, so they make nothing certain', () => {
  const minutes = [steady(9000, 0)];
  assert.equal(replay(minutes, only({ pps: 1000 }), only({ pps: 50_000 }))[0]!.isCertain, false);
  assert.equal(replay(minutes, only({ pps: 1000 }), only({ pps: 10_000 }))[0]!.isCertain, true);
  assert.equal(replay(minutes, only({ pps: 1000 }), only({ pps: null }))[0]!.isCertain, false);
});

test('three months of one address are replayed by one look at each minute', () => {
  let looks = 0;
  const minutes = Array.from({ length: 2 * 131_040 }, (_, i) => {
    const minute = steady(i % 5000 === 0 ? 9000 : 100, i);
    return {
      ...minute,
      get oneSecond() {
        looks += 1;
        return minute.oneSecond;
      },
    };
  });
  const found = replay(minutes, only({ pps: 1000 }), close);
  assert.equal(found.length, 53);
  assert.equal(looks, minutes.length);
});

test('learn proposes twice the 99.9th percentile in two digits, within bounds, and leaves alone what fits or is not judged', () => {
  const percentiles = {
    inbound: { ...off, pps: 40_123, bps: 445e6, syn_pps: 3, udp_bps: 1e6, icmp_pps: 0 },
    outbound: { ...off, pps: 123_456, syn_pps: 10 },
  };
  const now: ThresholdSet = {
    ...thresholdDefaults,
    inbound: { ...thresholdDefaults.inbound, udp_bps: null },
  };
  const found = propose(percentiles, now, thresholdDefaults);
  assert.deepEqual(
    found.map((one) => [one.direction, one.metric, one.now, one.proposed]),
    [
      ['inbound', 'pps', 50_000, 81_000],
      ['inbound', 'syn_pps', 10_000, 1000],
      ['outbound', 'pps', 80_000, 250_000],
      ['outbound', 'syn_pps', 3000, 300],
    ],
  );
});
