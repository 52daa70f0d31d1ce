/** What is stored of a delivered minute: exact bytes, applications, reasons, and nothing of what no link carries. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { minutesAgo, point } from './testing/telemetry-points.ts';
import { createTelemetrySender, type TelemetrySender } from './testing/telemetry-sender.ts';

let sender: TelemetrySender;
before(async () => {
  sender = await createTelemetrySender();
});
after(() => sender.world[Symbol.asyncDispose]());

test('NET-2.4.0: bytes are restored exactly from rates, for any size', async () => {
  await sender.freshAllocation('Exact');
  const sizes = [0, 1, 2, 7, 59, 61, 1_000_003, 2 ** 31 + 1, 987_654_321_987, 2_999_999_999_999];
  const series = sizes.map((bytes, i) => point(minutesAgo(30 - i), { in: bytes, out: sizes.at(-1 - i)! }));
  assert.deepEqual(await sender.receiptsOf(sender.request([sender.target(series)])), ['accepted']);
  const minutes = await sender.stored();
  assert.deepEqual(
    minutes.map((minute) => minute.inboundBytes),
    sizes,
  );
  assert.deepEqual(
    minutes.map((minute) => minute.inboundBps),
    series.map((each) => each.inbound_bps),
  );
});

test('NET-2.4.7: a minute that no link carries is set aside by name, and all others are stored', async () => {
  await sender.freshAllocation('Set aside');
  const monitor = await sender.tokenOf('Monitor with a fault');
  const good = [
    point(minutesAgo(9), { in: 3_000_000_000_000, out: 1 }),
    point(minutesAgo(3), { in: 7, out: 8 }),
  ];
  const absurd = { name: 'example.net', outbound_bytes: 1 };
  const bad = [
    point(minutesAgo(8), { in: 2 ** 51, out: 1 }),
    point(minutesAgo(7), { in: 1, out: 3_000_000_000_001 }),
    point(minutesAgo(6), { in: 1, out: 1 }, { pps: 1e300 }),
    point(minutesAgo(5), { in: 1, out: 1 }, { applications: [{ ...absurd, inbound_bytes: 1e300 }] }),
    point(minutesAgo(4), { in: 1, out: 1 }, { expected_bps: 1e300 }),
  ];
  const series = [...bad, ...good].sort((a, b) => a.timestamp.localeCompare(b.timestamp));
  const answer = await sender.post(sender.request([sender.target(series)]), monitor.token);
  assert.equal(answer.status, 200);
  assert.deepEqual(await answer.json(), {
    receipts: [{ id: sender.allocation.id, receipt: 'accepted' }],
    set_aside: bad.map(({ timestamp }, i) => ({
      id: sender.allocation.id,
      timestamp,
      reason: i === 3 ? 'bytes_implausible' : 'rate_implausible',
    })),
  });
  const minutes = await sender.stored();
  assert.deepEqual(
    minutes.map((minute) => minute.minute.toISOString()),
    good.map(({ timestamp }) => timestamp),
  );
  const { setAside } = await sender.world.protectTraffic.readSources(systemActor, monitor.projectId);
  assert.deepEqual(
    setAside.map(({ minute }) => minute.toISOString()).toSorted(),
    bad.map(({ timestamp }) => timestamp),
  );
  const { identities } = await sender.world.protectTraffic.readApplicationUse(
    systemActor,
    { serverIds: [sender.serverId] },
    { fromMs: 0, toMs: 0 },
  );
  assert.deepEqual(identities, []);
});

test('NET-2.4.0: applications are kept with their minute, names and identities as sent', async () => {
  await sender.freshAllocation('Applications');
  const applications = [
    { name: 'example.com', inbound_bytes: 500, outbound_bytes: 60, transport: 'tcp', server_port: 443 },
    { name: 'IPsec ESP', inbound_bytes: 1, outbound_bytes: 2, transport: null, server_port: null },
    { name: 'older.example', inbound_bytes: 3, outbound_bytes: 4 },
  ];
  await sender.receiptsOf(
    sender.request([sender.target([point(minutesAgo(5), { in: 600, out: 70 }, { applications })])]),
  );
  assert.deepEqual((await sender.stored())[0]!.applications, [
    applications[0],
    applications[1],
    { ...applications[2], transport: null, server_port: null },
  ]);
});

test('what was not observed stays unknown: null is stored as null and a missing minute has no row', async () => {
  await sender.freshAllocation('Gaps');
  await sender.receiptsOf(
    sender.request([
      sender.target([
        point(minutesAgo(9), { in: 5, out: null }, { pps: null, coverage: null }),
        point(minutesAgo(7), { in: 0, out: 0 }),
      ]),
    ]),
  );
  const minutes = await sender.stored();
  assert.deepEqual(
    minutes.map(({ minute, inboundBytes, outboundBytes, coverage }) => [
      minute.getTime(),
      inboundBytes,
      outboundBytes,
      coverage,
    ]),
    [
      [minutesAgo(9), 5, null, null],
      [minutesAgo(7), 0, 0, 1],
    ],
  );
});

test('NET-2.4.5, NET-2.4.6: expected and attack rates are stored as sent, with why one is unknown; a changed reason replaces', async () => {
  await sender.freshAllocation('Reasons');
  const known = { expected_bps: 80.5, expected_pps: 1.5, ddos_bps: 0, ddos_pps: 0 };
  const series = (reason: TelemetryPoint['reason']) => [
    point(minutesAgo(6), { in: 1, out: 1 }, known),
    { ...point(minutesAgo(5), { in: 1, out: 1 }), ...(reason ? { reason } : {}) },
  ];
  assert.deepEqual(await sender.receiptsOf(sender.request([sender.target(series('no_epoch'))])), [
    'accepted',
  ]);
  assert.deepEqual(await sender.receiptsOf(sender.request([sender.target(series('no_epoch'))])), [
    'unchanged',
  ]);
  assert.deepEqual(await sender.receiptsOf(sender.request([sender.target(series('unassignable'))])), [
    'accepted',
  ]);
  assert.deepEqual(
    (await sender.stored()).map((row) => [
      row.expectedBps,
      row.expectedPps,
      row.ddosBps,
      row.ddosPps,
      row.reason,
    ]),
    [
      [80.5, 1.5, 0, 0, null],
      [null, null, null, null, 'unassignable'],
    ],
  );
});

test('NET-2.4.2, NET-9.2: the part that our own port scans are is stored beside the whole; without one it is zero, and a changed one replaces', async () => {
  await sender.freshAllocation('Own scans');
  const at = minutesAgo(6);
  const parts = async () =>
    (await sender.stored()).map((row) => [
      row.inboundBytes,
      row.ownScanInboundBytes,
      row.ownScanOutboundBytes,
    ]);
  const send = async (own_scan?: TelemetryPoint['own_scan']) =>
    sender.receiptsOf(
      sender.request([sender.target([point(at, { in: 6_000, out: 600 }, own_scan ? { own_scan } : {})])]),
    );
  assert.deepEqual(await send(), ['accepted'], 'as an older monitor sends it');
  assert.deepEqual(await parts(), [[6_000, 0, 0]]);
  assert.deepEqual(await send({ inbound_bps: (4_501 * 8) / 60, outbound_bps: (307 * 8) / 60 }), ['accepted']);
  assert.deepEqual(await send({ inbound_bps: (4_501 * 8) / 60, outbound_bps: (307 * 8) / 60 }), [
    'unchanged',
  ]);
  assert.deepEqual(await parts(), [[6_000, 4_501, 307]]);
});

test('NET-2.4.2: a minute whose own port scans are more than all of it is set aside, and the others are stored', async () => {
  await sender.freshAllocation('More than all');
  const series = [
    point(minutesAgo(9), { in: 60, out: 60 }, { own_scan: { inbound_bps: 8.1, outbound_bps: 0 } }),
    point(minutesAgo(8), { in: null, out: 60 }, { own_scan: { inbound_bps: 1, outbound_bps: 0 } }),
    point(minutesAgo(7), { in: 60, out: 60 }, { own_scan: { inbound_bps: 8, outbound_bps: 8 } }),
  ];
  const answer = await sender.post(sender.request([sender.target(series)]));
  const { set_aside } = (await answer.json()) as { set_aside: { timestamp: string }[] };
  assert.deepEqual(
    set_aside.map(({ timestamp }) => Date.parse(timestamp)),
    [minutesAgo(9), minutesAgo(8)],
  );
  assert.deepEqual(
    (await sender.stored()).map(({ minute }) => minute.getTime()),
    [minutesAgo(7)],
  );
});
