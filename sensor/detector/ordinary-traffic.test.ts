// Slow: every kind of ordinary traffic at three rates, by IPv4 and IPv6
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dividedThresholds, observeStreams, type Stream } from '#sensor/testing/attack-traffic.ts';
import { createOrdinary, ordinaryKinds } from '#sensor/testing/ordinary-traffic.ts';
import { Detector } from './index.ts';

const thresholds = dividedThresholds(200);
const scope = { prefixes: ['192.0.2.0/24', '2001:db8:7::/48'], addresses: [] };

function attacksOf(streams: readonly Stream[]) {
  const detector = new Detector({ scope, thresholds, key: [1, 2] });
  observeStreams(detector, streams);
  return detector.finish().incidents.filter(({ severity }) => severity === 'attack');
}

for (const name of Object.keys(ordinaryKinds))
  test(`NET-1.1: ${name}: no attack at 1, 4 and 20 times a threshold, from the start or later`, () => {
    for (const [i, ratio] of [1, 4, 20].entries()) {
      for (const version of [4, 6] as const) {
        const { step, perSecond } = createOrdinary(name, version, thresholds, i);
        const from = ((i + version) % 2) * 1.37;
        const attacks = attacksOf([{ step, perSecond: perSecond * ratio, from, to: from + 8 }]);
        assert.deepEqual(
          attacks.map((one) => one.class),
          [],
          `${ratio} times, IPv${version}`,
        );
      }
    }
  });
