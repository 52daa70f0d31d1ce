import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import type { AddressApplication } from '#monitor/facts/index.ts';
import { buildPoints, listIdentities, listNames } from './build-points.ts';

function use(fields: Partial<AddressApplication>): AddressApplication {
  return {
    minute: 1_790_000_040,
    direction: 'outbound',
    name: 'example.com',
    protocol: 6,
    serverPort: 443,
    evidence: 'tls_sni',
    isAttributed: true,
    inboundBytes: 0,
    outboundBytes: 0,
    lastSentMs: fields.outboundBytes ? 1_790_000_041_000 : null,
    ...fields,
  };
}

const anyUse = fc
  .record({
    name: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'),
    protocol: fc.constantFrom(6, 17, 1, 47, 250),
    serverPort: fc.constantFrom(null, 53, 80, 443),
    inboundBytes: fc.nat(1_000),
    outboundBytes: fc.nat(3),
    isAttributed: fc.boolean(),
  })
  .map(use);

test('NET-2.4.1: at most 20 identities, those that sent first, then by bytes, without an aggregate', () => {
  fc.assert(
    fc.property(fc.array(anyUse, { maxLength: 120 }), (rows) => {
      const listed = listIdentities(rows);
      assert.ok(listed.length <= 20);
      const keys = listed.map((entry) => `${entry.name} ${entry.transport} ${entry.server_port}`);
      assert.equal(new Set(keys).size, keys.length);
      for (const [i, entry] of listed.entries()) {
        const next = listed[i + 1];
        if (!next) continue;
        assert.ok(entry.outbound_bytes > 0 || next.outbound_bytes === 0, 'who sent comes first');
        const isSameGroup = entry.outbound_bytes > 0 === next.outbound_bytes > 0;
        const bytes = (e: typeof entry) => e.inbound_bytes + e.outbound_bytes;
        assert.ok(!isSameGroup || bytes(entry) >= bytes(next), 'then bytes');
      }
      assert.deepEqual(listIdentities([...rows].reverse()), listed, 'a replay sends the same rows');
    }),
  );
});

test('NET-2.4.1: kept identities have their exact bytes, and the order of the specification decides who is kept', () => {
  const quiet = use({ name: 'large.example', inboundBytes: 1_000_000 });
  const rows = [...Array(20)].map((_, i) => use({ name: `site-${i}.example`, outboundBytes: i + 1 }));
  const listed = listIdentities([quiet, ...rows]);
  assert.equal(listed.length, 20);
  assert.ok(!listed.some((entry) => entry.name === 'large.example' || entry.name === 'Other'));
  const both = listIdentities([
    use({ outboundBytes: 5, inboundBytes: 7 }),
    use({ direction: 'inbound', outboundBytes: 11, inboundBytes: 13 }),
    use({ serverPort: 8443, outboundBytes: 1 }),
  ]);
  assert.deepEqual(both, [
    { name: 'example.com', inbound_bytes: 20, outbound_bytes: 16, transport: 'tcp', server_port: 443 },
    { name: 'example.com', inbound_bytes: 0, outbound_bytes: 1, transport: 'tcp', server_port: 8443 },
  ]);
});

test('NET-2.4.1: older receivers get names only, the top 19 and Other beyond 20', () => {
  const rows = [...Array(25)].map((_, i) => use({ name: `n${i}`, outboundBytes: 100 - i, inboundBytes: 1 }));
  const listed = listNames(rows);
  assert.equal(listed.length, 20);
  assert.deepEqual(Object.keys(listed[0]!).sort(), ['inbound_bytes', 'name', 'outbound_bytes']);
  assert.equal(listed[19]!.name, 'Other');
  const outbound = (entries: readonly { outbound_bytes: number }[]) =>
    entries.reduce((sum, entry) => sum + entry.outbound_bytes, 0);
  assert.equal(
    outbound(listed),
    rows.reduce((sum, row) => sum + row.outboundBytes, 0),
  );
  assert.ok(!listNames(rows.slice(0, 20)).some((entry) => entry.name === 'Other'));
});

test('NET-2.4.4: what only a remote address names never leaves the monitor', () => {
  const rows = [use({ name: '198.51.100.9', isAttributed: false, outboundBytes: 9 })];
  assert.deepEqual(listIdentities(rows), []);
  assert.deepEqual(listNames(rows), []);
});

test('NET-2.4.0: every point fits the contract and its bytes come back exactly', () => {
  const Point = Compile(TelemetryPoint);
  const bytes = fc.integer({ min: 0, max: 2 ** 50 });
  fc.assert(
    fc.property(bytes, bytes, fc.nat(), fc.array(anyUse, { maxLength: 40 }), (rx, tx, packets, rows) => {
      const minute = 1_790_000_040;
      const counted = { captureId: 1, rxBytes: rx, txBytes: tx, packets, coverage: null, loss: null };
      const minutes = [
        { isGap: true as const, minute: minute - 60, loss: null },
        { isGap: false as const, minute, ...counted },
      ];
      const content = { minutes, applications: rows, verdicts: new Map() };
      const [point, ...more] = buildPoints(content, {
        withIdentity: true,
        withReason: true,
        withOwnScan: true,
        withDropped: true,
      });
      assert.equal(more.length, 0, 'a gap without a known reason makes no point');
      assert.ok(Point.Check(point));
      assert.equal(Math.round((point!.inbound_bps! * 60) / 8), rx);
      assert.equal(Math.round((point!.outbound_bps! * 60) / 8), tx);
      assert.equal(point!.timestamp, new Date(minute * 1000).toISOString());
    }),
  );
});

test('NET-2.4.4: bytes with which an address only refuses are no outbound bytes of an application', () => {
  const refused = use({ name: 'SSH', serverPort: 22, inboundBytes: 60, outboundBytes: 40, lastSentMs: null });
  const used = use({ name: 'HTTPS', inboundBytes: 900, outboundBytes: 700 });
  const bytesOf = (rows: readonly { name: string; inbound_bytes: number; outbound_bytes: number }[]) =>
    rows.map((row) => [row.name, row.inbound_bytes, row.outbound_bytes]);
  const expected = [
    ['HTTPS', 900, 700],
    ['SSH', 60, 0],
  ];
  assert.deepEqual(bytesOf(listIdentities([refused, used])), expected);
  assert.deepEqual(bytesOf(listNames([refused, used])), expected);
  const both = listIdentities([refused, { ...refused, minute: refused.minute + 60, lastSentMs: 1 }]);
  assert.deepEqual(bytesOf(both), [['SSH', 120, 40]]);
});

test('what filters dropped stands beside the rates, for receivers that take it', () => {
  const Point = Compile(TelemetryPoint);
  const counted = { countedBytes: 60, countedPackets: 1 };
  const minutes = [
    {
      ...{ isGap: false as const, minute: 1_790_000_040, captureId: 1, rxBytes: 60, txBytes: 0, packets: 1 },
      ...{ coverage: 1, loss: null },
      dropped: { rxBytes: 600, rxPackets: 6, txBytes: 60, txPackets: 3, ...counted },
    },
  ];
  const [taken, left] = [true, false].map((withDropped) =>
    buildPoints(
      { minutes, applications: [], verdicts: new Map() },
      { withIdentity: true, withReason: true, withOwnScan: true, withDropped },
    ),
  ) as [TelemetryPoint[], TelemetryPoint[]];
  assert.ok(Point.Check(taken[0]));
  assert.deepEqual(taken[0]!.dropped, {
    inbound_bps: 80,
    outbound_bps: 8,
    inbound_pps: 0.1,
    outbound_pps: 0.05,
  });
  assert.equal(taken[0]!.inbound_bps, 8);
  assert.equal('dropped' in left[0]!, false);
});

test('NET-2.4.3: a minute that was not observed as a whole says why, and a gap is a point without values, for receivers that take reasons', () => {
  const Point = Compile(TelemetryPoint);
  const minute = 1_790_000_040;
  const seen = { isGap: false as const, captureId: 1, rxBytes: 60, txBytes: 0, packets: 1, coverage: 0.5 };
  const minutes = [
    { isGap: true as const, minute, loss: 'sensor_down' as const },
    { ...seen, minute: minute + 60, loss: 'capture_failed' as const },
    { ...seen, minute: minute + 120, loss: 'clock_step' as const },
    { ...seen, minute: minute + 180, loss: 'packets_lost' as const },
    { isGap: true as const, minute: minute + 240, loss: 'spool_damaged' as const },
    { isGap: true as const, minute: minute + 300, loss: null },
  ];
  const content = { minutes, applications: [], verdicts: new Map() };
  const points = buildPoints(content, {
    withIdentity: true,
    withReason: true,
    withOwnScan: true,
    withDropped: true,
  });
  assert.deepEqual(
    points.map((point) => [point.inbound_bps, point.coverage, point.reason]),
    [
      [null, 0, 'sensor_down'],
      [8, 0.5, 'capture_failed'],
      [8, 0.5, 'clock'],
      [8, 0.5, 'packets_lost'],
      [null, 0, 'packets_lost'],
    ],
  );
  assert.ok(points.every((point) => Point.Check(point)));
  const older = buildPoints(content, {
    withIdentity: true,
    withReason: false,
    withOwnScan: false,
    withDropped: false,
  });
  assert.deepEqual(
    older.map((point) => [point.inbound_bps, 'reason' in point]),
    [
      [8, false],
      [8, false],
      [8, false],
    ],
  );
});
