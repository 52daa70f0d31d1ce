import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ObservedMinute } from '#monitor/traffic/index.ts';
import type { DetectorReport } from '#monitor/views/detector-store.ts';
import { type Concern, concernsOf, expect, judgeMinute } from './judge-minutes.ts';

const minute = 1_795_428_000;
const observed: ObservedMinute = {
  ...{ isGap: false, minute, captureId: 4, rxBytes: 600, txBytes: 60, packets: 12, coverage: 1, loss: null },
};
const complete: DetectorReport = { isComplete: true, isCovered: true, attack: null, sensorId: 1 };
const own: Concern = {
  ...{ incidentId: 'one', isOwn: true, sensorIds: null },
  ...{ fromMs: minute * 1000 + 20_000, toMs: minute * 1000 + 90_000 },
};
const judge = (
  report: Partial<DetectorReport>,
  concerns: readonly Concern[] = [],
  of: Partial<ObservedMinute> = {},
) => {
  const { ddosBytes, ddosPackets, isChecked, reason, isHealthy } = judgeMinute(
    { ...observed, ...of },
    { ...complete, ...report },
    concerns,
  );
  return { ddosBytes, ddosPackets, isChecked, reason, isHealthy };
};
const unknown = (reason: string) => ({
  ...{ ddosBytes: null, ddosPackets: null, isChecked: true, reason, isHealthy: false },
});

test('NET-2.4.5: zero is said only with a complete report and an epoch that covers the address throughout', () => {
  assert.deepEqual(judge({}), {
    ddosBytes: 0,
    ddosPackets: 0,
    isChecked: true,
    reason: null,
    isHealthy: true,
  });
  assert.deepEqual(judge({ isComplete: false }), unknown('detector_incomplete'));
  assert.deepEqual(judge({ isCovered: false }), unknown('no_epoch'));
});

test('NET-2.4.5: attack traffic is what was counted for incidents of this very address', () => {
  const attack = { bytes: 500, packets: 10, captureId: 4 };
  const expected = { ddosBytes: 500, ddosPackets: 10, isChecked: true, reason: null, isHealthy: false };
  assert.deepEqual(judge({ attack }, [own]), expected);
  assert.deepEqual(judge({ attack }), unknown('unassignable'), 'no incident of the address was found');
  assert.deepEqual(judge({ attack }, [own], { packets: null }), { ...expected, ddosPackets: null });
  assert.equal(judge({ attack: { ...attack, bytes: 0 } }, [own]).ddosBytes, 0);
});

test('NET-2.4.5: of an attack that the capture counted before a filter dropped it, what was delivered is attack traffic', () => {
  const attack = { bytes: 500, packets: 10, captureId: 4 };
  const dropped = {
    rxBytes: 0,
    rxPackets: 0,
    txBytes: 450,
    txPackets: 9,
    countedBytes: 450,
    countedPackets: 9,
  };
  const of = (part: Partial<typeof dropped>, captureId = 4) => {
    const { ddosBytes, ddosPackets } = judge({ attack: { ...attack, captureId } }, [own], {
      dropped: { ...dropped, ...part },
    });
    return [ddosBytes, ddosPackets];
  };
  assert.deepEqual(of({}), [50, 1]);
  assert.deepEqual(
    of({ countedBytes: 0, countedPackets: 0 }),
    [500, 10],
    'it was dropped before it was counted',
  );
  assert.deepEqual(
    of({ countedBytes: 600, countedPackets: 12 }),
    [0, 0],
    'the filter matched more than the attack',
  );
  assert.deepEqual(of({}, 5), [500, 10], 'another capture counted it');
});

test('NET-2.4.3: an attack minute that its own source did not check has no coverage, with its reason', () => {
  const attack = { bytes: 500, packets: 10, captureId: 4 };
  const unchecked = {
    ...{ ddosBytes: 500, ddosPackets: 10, isChecked: false, reason: 'detector_incomplete' },
    isHealthy: false,
  };
  assert.deepEqual(judge({ attack, isComplete: false }, [own]), unchecked);
  assert.deepEqual(judge({ attack: { ...attack, captureId: 5 } }, [own]), unchecked);
});

test('NET-2.4.5: a minute that overlaps an attack which can not be assigned is unknown, those beside it are not', () => {
  const other: Concern = { ...own, isOwn: false };
  assert.deepEqual(judge({}, [other]), unknown('unassignable'));
  assert.deepEqual(
    judge({ attack: { bytes: 5, packets: 1, captureId: 4 } }, [own, other]),
    unknown('unassignable'),
  );
  assert.equal(judge({}, [other], { minute: minute + 60 }).reason, 'unassignable');
  assert.equal(judge({}, [other], { minute: minute - 60 }).reason, null);
  assert.equal(judge({}, [other], { minute: minute + 120 }).reason, null);
});

test('NET-2.4.5: a prefix concerns its addresses that its sensor counts, a capture all that its sensor counts, class other its host', () => {
  const period = { startedAtMs: 0, endedAtMs: minute * 1000 };
  const captures = [{ sensorId: 1, capture: 'eth0' }];
  const found = concernsOf(
    '192.0.2.7',
    {
      attacks: [
        { ...period, incidentId: 'own', address: '192.0.2.7', direction: 'inbound', captures },
        { ...period, incidentId: 'foreign', address: '192.0.2.8', direction: 'inbound', captures },
      ],
      unassignable: [
        { ...period, incidentId: 'prefix', kind: 'prefix', target: '192.0.2.0/24', captures },
        { ...period, incidentId: 'elsewhere', kind: 'prefix', target: '198.51.100.0/24', captures },
        { ...period, incidentId: 'capture', kind: 'capture', target: 'eth0', captures },
        { ...period, incidentId: 'other', kind: 'host', target: '192.0.2.7', captures },
        { ...period, incidentId: 'other host', kind: 'host', target: '192.0.2.9', captures },
      ],
    },
    (address, prefix) => prefix === address || prefix === '192.0.2.0/24',
  );
  assert.deepEqual(
    found.map(({ incidentId, isOwn, sensorIds }) => [incidentId, isOwn, sensorIds]),
    [
      ['own', true, null],
      ['prefix', false, [1]],
      ['capture', false, [1]],
      ['other', false, null],
    ],
  );
  for (const each of found.filter(({ incidentId }) => ['prefix', 'capture'].includes(incidentId))) {
    assert.equal(judge({ sensorId: 1 }, [each]).reason, 'unassignable');
    assert.equal(judge({ sensorId: 2 }, [each]).reason, null, 'another sensor counts the address');
  }
});

test('NET-2.4.6: expected is the mean of at least five healthy minutes of the thirty before', () => {
  const before = (offset: number, bytes: number, more: object = {}) => ({
    ...{ minute: minute - offset * 60, bytes, packets: 60, isHealthy: true },
    ...more,
  });
  const four = [1, 2, 3, 30].map((offset) => before(offset, 600));
  assert.deepEqual(expect(minute, four), { expectedBps: null, expectedPps: null }, 'learning');
  assert.deepEqual(expect(minute, [...four, before(4, 1200)]), { expectedBps: 96, expectedPps: 1 });
  for (const useless of [
    before(31, 1200),
    before(0, 1200),
    before(-1, 1200),
    before(4, 1200, { isHealthy: false }),
  ])
    assert.equal(expect(minute, [...four, useless]).expectedBps, null);
  const uncounted = before(4, 1200, { packets: null });
  assert.deepEqual(expect(minute, [...four, uncounted]), { expectedBps: 96, expectedPps: null });
});

test('NET-2.4.6: our own port scans are nothing to expect: a server of 20,000 bit/s stays one', () => {
  const usual = { rxBytes: 100_000, txBytes: 50_000, packets: 300 };
  const scan = { rxBytes: 1_800_000, txBytes: 1_394_000, packets: 60_000 };
  const before = [1, 2, 3, 4, 5].map((offset) => {
    const isScanned = offset % 2 === 0;
    const own = isScanned && {
      rxBytes: usual.rxBytes + scan.rxBytes,
      txBytes: usual.txBytes + scan.txBytes,
      packets: usual.packets + scan.packets,
      ownScan: scan,
    };
    return judgeMinute({ ...observed, minute: minute - offset * 60, ...usual, ...own }, complete, []);
  });
  assert.deepEqual(expect(minute, before), { expectedBps: 20_000, expectedPps: 5 });
  const unknown = judgeMinute(
    { ...observed, packets: null, ownScan: scan, rxBytes: 2e6, txBytes: 2e6 },
    complete,
    [],
  );
  assert.equal(unknown.packets, null, 'packets that can’t be counted stay unknown');
});

test('NET-2.4.6: a minute that was observed in part, or whose packets were lost, is not healthy', () => {
  assert.equal(judge({}, [], { coverage: 0.98 }).isHealthy, false);
  assert.equal(judge({}, [], { coverage: null }).isHealthy, false);
});
