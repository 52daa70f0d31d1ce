import assert from 'node:assert/strict';
import { test } from 'node:test';
import { additionalCidrsMax, drillsMax } from '#contracts/sensor-api/detection.ts';
import { defaultThresholds } from '#sensor/detector/index.ts';
import { readDetection } from './sections.ts';

const read = (detection: unknown) => readDetection({ detection_version: 1, detection });
const drill = {
  ...{ id: 'd', target: '192.0.2.7', direction: 'inbound', class: 'udp_flood', pps: 1000, bps: 5e6 },
  ...{ started_at: '2026-01-01T00:00:00Z', seconds: 10 },
};

test('NET-9.2: without a detection version there is nothing to detect', () => {
  for (const version of [undefined, 0, 'yes', null])
    assert.deepEqual(readDetection({ detection_version: version, detection: { inbound: { pps: 5 } } }), {
      values: { detection: null },
      ignored: 0,
      leftOut: 0,
    });
  assert.deepEqual(read(undefined).values.detection!.thresholds, defaultThresholds);
});

test('thresholds: missing values are the defaults, null is not judged, the longest prefix is kept as it came', () => {
  const { values, ignored } = read({
    ...{ additional_cidrs: ['198.51.100.0/24', '2001:DB8::/48'], inbound: { pps: 20_000, udp_bps: null } },
    ...{ outbound: {}, takes_evidence: true, drills: [drill] },
    groups: [{ prefixes: ['192.0.2.7', '192.0.2.0/28'], inbound: { syn_pps: 10 }, outbound: { pps: null } }],
  });
  const { additionalPrefixes, thresholds, groups, drills } = values.detection!;
  assert.equal(ignored, 0);
  assert.deepEqual(additionalPrefixes, ['198.51.100.0/24', '2001:db8::/48']);
  assert.deepEqual(thresholds.inbound, {
    ...defaultThresholds.inbound,
    ...{ pps: 20_000, udp_bps: Number.POSITIVE_INFINITY },
  });
  assert.deepEqual(groups[0]!.prefixes, ['192.0.2.7/32', '192.0.2.0/28']);
  assert.equal(groups[0]!.thresholds.inbound.syn_pps, 10);
  assert.equal(groups[0]!.thresholds.outbound.pps, Number.POSITIVE_INFINITY);
  assert.deepEqual(drills[0]!.startedAtMs, Date.UTC(2026, 0, 1));
});

test('bad values are counted as ignored and the rest is used; what is above a bound is left out', () => {
  const { values, ignored, leftOut } = read({
    additional_cidrs: [
      '198.51.100.1/24',
      7,
      ...Array.from({ length: additionalCidrsMax + 2 }, (_, i) => `10.0.${i}.0/24`),
    ],
    inbound: { pps: -1, bps: 'much', syn_pps: 5, colour: 3 },
    outbound: 'none',
    groups: [
      null,
      { prefixes: ['x'], inbound: {} },
      { prefixes: ['192.0.2.1'], inbound: { pps: Number.NaN } },
    ],
    drills: [
      { ...drill, class: 'magic' },
      { ...drill, seconds: 0 },
      { ...drill, started_at: 'soon' },
      ...Array.from({ length: drillsMax + 1 }, () => drill),
    ],
  });
  const { thresholds, groups, drills, additionalPrefixes } = values.detection!;
  assert.equal(thresholds.inbound.syn_pps, 5);
  assert.equal(thresholds.inbound.pps, defaultThresholds.inbound.pps);
  assert.deepEqual(thresholds.outbound, defaultThresholds.outbound);
  assert.deepEqual(
    [groups.length, drills.length, additionalPrefixes.length],
    [1, drillsMax, additionalCidrsMax],
  );
  assert.equal(ignored, 2 + 3 + 1 + 2 + 1 + 1 + 3);
  assert.equal(leftOut, 2 + 1);
  for (const nonsense of [7, [], 'x', null, { groups: {} }, { drills: 3 }])
    assert.deepEqual(read(nonsense).values.detection!.thresholds, defaultThresholds);
});
