/** Deliveries of minutes: what a receipt says, and that each minute is stored once, in its generation. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startOfMinuteMs } from '#common/clock/index.ts';
import type { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';
import { minutesAgo, point } from './testing/telemetry-points.ts';
import { createTelemetrySender, type TelemetrySender } from './testing/telemetry-sender.ts';

let sender: TelemetrySender;
before(async () => {
  sender = await createTelemetrySender();
});
after(() => sender.world[Symbol.asyncDispose]());

test('NET-2.4.7, NET-4.b: the first delivery is accepted, an identical one is unchanged and adds nothing', async () => {
  await sender.freshAllocation('Once');
  const body = sender.request([sender.target([point(minutesAgo(5), { in: 1_234_567, out: 89 })])]);
  assert.deepEqual(await sender.receiptsOf(body), ['accepted']);
  const first = await sender.stored();
  assert.deepEqual(await sender.receiptsOf(body), ['unchanged']);
  assert.deepEqual(await sender.stored(), first);
  assert.deepEqual([first[0]!.inboundBytes, first[0]!.outboundBytes, first.length], [1_234_567, 89, 1]);
});

test('NET-2.4.7: a minute that is sent again as it was is neither written nor locked', async () => {
  await sender.freshAllocation('Again');
  const series = Array.from({ length: 60 }, (_, i) => point(minutesAgo(70 - i), { in: i, out: 0 }));
  assert.deepEqual(await sender.receiptsOf(sender.request([sender.target(series)])), ['accepted']);
  const rows = () =>
    sender.world.database.pool.query<{ version: string }>(
      'select minute, xmin::text, xmax::text, ctid::text from protect_minutes where allocation_id = $1 order by minute',
      [sender.allocation.id],
    );
  const before = (await rows()).rows;
  assert.deepEqual(await sender.receiptsOf(sender.request([sender.target(series)])), ['unchanged']);
  assert.deepEqual((await rows()).rows, before);
});

test('NET-2.4.7: late data for a stored minute replaces it and is accepted; bytes never add up', async () => {
  await sender.freshAllocation('Late');
  const at = minutesAgo(5);
  await sender.receiptsOf(sender.request([sender.target([point(at, { in: 100, out: 10 })])]));
  assert.deepEqual(
    await sender.receiptsOf(sender.request([sender.target([point(at, { in: 150, out: 10 })])])),
    ['accepted'],
  );
  const minutes = await sender.stored();
  assert.deepEqual([minutes.length, minutes[0]!.inboundBytes], [1, 150]);
});

test('NET-2.4.7: the same minutes delivered at the same time by two senders are stored once', async () => {
  await sender.freshAllocation('Parallel');
  const series = Array.from({ length: 60 }, (_, i) => point(minutesAgo(70 - i), { in: i, out: i }));
  const outcomes = await Promise.all(
    Array.from({ length: 6 }, () => sender.receiptsOf(sender.request([sender.target(series)]))),
  );
  assert.deepEqual(outcomes.flat().toSorted(), ['accepted', ...new Array(5).fill('unchanged')]);
  assert.equal((await sender.stored()).length, 60);
});

test('NET-2.4.7: another generation, address, cluster or scope is unmatched and stores nothing', async () => {
  await sender.freshAllocation('Unmatched');
  const series = [point(minutesAgo(5), { in: 1, out: 1 })];
  const good = sender.target(series);
  const crooked = [
    { ...good, id: 999_999 },
    { ...good, assigned_at: sender.allocation.assignedAt.replace(/\d{6}Z$/, '000000Z') },
    { ...good, address: '203.0.113.251' },
  ];
  assert.deepEqual(await sender.receiptsOf(sender.request(crooked)), ['unmatched', 'unmatched', 'unmatched']);
  assert.deepEqual(
    await sender.receiptsOf(sender.request([good], { cluster_ids: [sender.world.clusterId + 1] })),
    ['unmatched'],
  );
  const foreign = await sender.world.createToken(['protect_telemetry_ingest'], [sender.world.clusterId + 1]);
  const answer = (await (await sender.post(sender.request([good]), foreign)).json()) as {
    receipts: { receipt: string }[];
  };
  assert.equal(answer.receipts[0]!.receipt, 'unmatched');
  assert.deepEqual(await sender.stored(), []);
});

test('NET-2.3: minutes that began before the assignment, or ended after the release, are unmatched', async () => {
  await sender.freshAllocation('Boundary');
  const assignedMs = Date.parse(sender.allocation.assignedAt);
  const minuteOf = Math.floor(assignedMs / 60_000) * 60_000;
  assert.deepEqual(
    await sender.receiptsOf(sender.request([sender.target([point(minuteOf, { in: 1, out: 1 })])])),
    ['unmatched'],
  );
  assert.deepEqual(
    await sender.receiptsOf(sender.request([sender.target([point(minuteOf + 60_000, { in: 2, out: 2 })])])),
    ['accepted'],
  );

  await sender.world.servers.destroyServer(systemActor, null, sender.serverId);
  await sender.world.jobs.drain();
  const now = startOfMinuteMs(worldNowMs());
  assert.deepEqual(
    await sender.receiptsOf(sender.request([sender.target([point(now, { in: 3, out: 3 })])])),
    ['unmatched'],
  );
});

test('receipts come in the order of the targets', async () => {
  await sender.freshAllocation('Order');
  const second = (await sender.world.addresses.listAllocationsOfServers([sender.serverId]))[1]!;
  const at = minutesAgo(5);
  const targets = [
    { ...sender.target([point(at, { in: 1, out: 1 })]), id: 888_888 },
    sender.target([point(at, { in: 1, out: 1 })], second),
    sender.target([point(at, { in: 1, out: 1 })]),
  ];
  const answer = await sender.post(sender.request(targets));
  assert.deepEqual(await answer.json(), {
    receipts: [
      { id: 888_888, receipt: 'unmatched' },
      { id: second.id, receipt: 'accepted' },
      { id: sender.allocation.id, receipt: 'accepted' },
    ],
  });
});

test('NET-2.4.0: what is over a bound or has an unknown field is refused whole, with 422', async () => {
  await sender.freshAllocation('Bounds');
  const at = minutesAgo(5);
  const many = (count: number) =>
    Array.from({ length: count }, (_, i) => point(minutesAgo(90 - i), { in: i, out: i }));
  const application = {
    name: 'a.example',
    inbound_bytes: 1,
    outbound_bytes: 1,
    transport: 'tcp',
    server_port: 1,
  };
  const applications = Array.from({ length: 20 }, (_, i) => ({ ...application, name: `a${i}.example` }));
  const good = point(at, { in: 1, out: 1 });
  const refusals: Record<string, unknown> = {
    '61 points': sender.request([sender.target(many(61))]),
    '51 targets': sender.request(Array.from({ length: 51 }, () => sender.target([]))),
    '21 applications': sender.request([
      sender.target([{ ...good, applications: [...applications, application] }]),
    ]),
    'an unknown field': sender.request([{ ...sender.target([good]), mac_address: '02:00:00:00:00:01' }]),
    'an unknown field of a point': sender.request([sender.target([{ ...good, bytes: 1 } as TelemetryPoint])]),
    'contract version 2': sender.request([], { contract_version: 2 as 1 }),
    'a negative rate': sender.request([sender.target([{ ...good, pps: -1 }])]),
    'coverage above 1': sender.request([sender.target([{ ...good, coverage: 1.5 }])]),
    'half a minute': sender.request([
      sender.target([{ ...good, timestamp: new Date(at + 30_000).toISOString() }]),
    ]),
    'no zone': sender.request([
      sender.target([{ ...good, timestamp: new Date(at).toISOString().replace('Z', '') }]),
    ]),
    'a minute twice': sender.request([sender.target([good, good])]),
    'a minute to come': sender.request([sender.target([point(minutesAgo(-10), { in: 1, out: 1 })])]),
    'a rate without end': JSON.stringify(sender.request([sender.target([good])])).replace(
      /"pps":[\d.]+/,
      '"pps":1e999',
    ),
  };
  for (const [name, body] of Object.entries(refusals)) {
    const answer = await sender.post(body);
    assert.equal(answer.status, 422, name);
    assert.equal(
      ((await answer.json()) as { error: { code: string } }).error.code,
      'validation_failed',
      name,
    );
  }
  assert.deepEqual(await sender.stored(), []);
  const largest = many(60).map((each, i) => (i === 59 ? { ...each, applications } : each));
  assert.equal((await sender.receiptsOf(sender.request([sender.target(largest)])))[0], 'accepted');
});

test('a body over the bound is 413, and without the permission nothing of it is read', async () => {
  const large = `{"contract_version":1,"x":"${'a'.repeat(17 * 1024 * 1024)}"}`;
  assert.equal((await sender.post(large)).status, 413);
  const without = await sender.world.createToken(['vm_inventory_read']);
  assert.equal((await sender.post('not even json', without)).status, 403);
});
