import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createSetAside } from '#contracts/sensor-api/set-aside.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import { encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { createIntake, type Intake, type ReadUpload } from '#monitor/intake/index.ts';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  type MonitorWorld,
  testMinute,
} from '#monitor/testing/index.ts';
import { createDecodedUploads, type UploadKey } from './decoded-uploads.ts';

/** An intake that counts what it decodes: on receipt, and from stored bytes. */
function countDecodings() {
  const count = { received: 0, stored: 0 };
  const real = createIntake({ clock: createTestClock(0) });
  const intake: Intake = {
    ...real,
    readUpload(...given) {
      count.received += 1;
      return real.readUpload(...given);
    },
    readStored(...given) {
      count.stored += 1;
      return real.readStored(...given);
    },
  };
  return { count, intake };
}

const uploadsMade = 12;
const makeUploads = (spool = createSpool()): TelemetryUpload[] =>
  Array.from({ length: uploadsMade }, (_, i) => {
    const hosts = [host('192.0.2.10', 1000 + i, i), host('2001:db8::10', 7, 8, 'br0|02:00:00:00:00:01')];
    const minute = testMinute + (i % 3) * 60;
    return spool.upload([captureMinute({ minute, observedMs: 20_000, hosts })]);
  });

async function decodedBytesOf(upload: TelemetryUpload): Promise<number> {
  const intake = createIntake({ clock: createTestClock(0) });
  return (await intake.readUpload(1, encodeUpload(upload), 'identity')).decodedBytes;
}

/** What the address got, whichever way its uploads went. */
const sums = (world: MonitorWorld) =>
  world.rows(
    "select minute, sum(rx_bytes)::int as rx, count(*)::int as n from host_minutes where address = '192.0.2.10' group by 1 order by 1",
  );
const pending = async (world: MonitorWorld) =>
  (await world.rows("select 1 from inbox_uploads where state = 'pending'")).length;

test('an upload that this process received is decoded once, also when it is delivered twice or fails once', async () => {
  const { count, intake } = countDecodings();
  let failures = 1;
  await using world = await createMonitorWorld({
    intake,
    plusConsumer: {
      kind: 'test',
      select: () => true,
      async apply() {
        if (failures-- > 0) throw new Error('planned failure');
      },
    },
  });
  const uploads = makeUploads();
  const receipts = await Promise.all([...uploads, ...uploads].map((upload) => world.send(upload)));
  assert.equal(receipts.filter((receipt) => receipt === 'accepted').length, uploadsMade);
  await world.inbox.drain();
  assert.deepEqual([count, await pending(world)], [{ received: 2 * uploadsMade, stored: 0 }, 0]);
});

test('after a restart, in another process and beyond the bound, uploads are decoded from their stored bytes, with the same facts', async () => {
  await using direct = await createMonitorWorld();
  await direct.apply(...makeUploads());
  const expected = await sums(direct);
  assert.equal(expected.length, 3);

  await using world = await createMonitorWorld();
  for (const upload of makeUploads()) await world.send(upload);
  const another = countDecodings();
  await world.anotherInbox({ intake: another.intake }).drain();
  assert.deepEqual([another.count, await pending(world)], [{ received: 0, stored: uploadsMade }, 0]);
  assert.deepEqual(await sums(world), expected);

  const decodedBytes = await decodedBytesOf(makeUploads()[0]!);
  const small = countDecodings();
  await using bounded = await createMonitorWorld({
    intake: small.intake,
    decodedBytesMax: 4.5 * decodedBytes,
  });
  await bounded.apply(...makeUploads());
  assert.deepEqual(
    [small.count, await pending(bounded)],
    [{ received: uploadsMade, stored: uploadsMade - 4 }, 0],
  );
  assert.deepEqual(await sums(bounded), expected);
});

test('a redelivery and a refused upload take no room from the next one', async () => {
  const { count, intake } = countDecodings();
  const spool = createSpool();
  const [first, second] = makeUploads(spool);
  await using world = await createMonitorWorld({
    intake,
    decodedBytesMax: 1.5 * (await decodedBytesOf(first!)),
  });
  await world.apply(first!);
  assert.equal(await world.send(first!), 'duplicate');
  const other = { ...first!, minutes: [captureMinute({ hosts: [host('192.0.2.10', 1, 1)] })] };
  await assert.rejects(world.send(other), { code: 'telemetry.refused' });
  await world.apply(second!);
  assert.deepEqual([count.stored, await pending(world)], [0, 0]);
});

const key = (sequence: number, digest = 'a'): UploadKey => ({
  ...{ sensorId: 1, spoolId: 'spool', sequence },
  digest: Buffer.from(digest),
});
const read = (decodedBytes: number, digest = 'a'): ReadUpload => ({
  ...{ upload: createSpool().upload([]), setAside: createSetAside() },
  ...{ decodedBytes, digest: Buffer.from(digest) },
});

test('decoded uploads never take more than their bound; the oldest stay until they are applied or a minute old', async () => {
  const clock = createTestClock(0);
  const decoded = createDecodedUploads(clock, 100);
  const held = () => [1, 2, 3, 4].filter((sequence) => decoded.find(key(sequence)) !== null);
  decoded.hold(key(1), read(60));
  decoded.hold(key(2), read(41));
  decoded.hold(key(3), read(40));
  assert.deepEqual(held(), [1, 3]);
  decoded.forget([key(3)]);
  decoded.hold(key(4), read(1));
  assert.deepEqual(held(), [1, 4]);
  await clock.advance(30_000);
  decoded.hold(key(3), read(39));
  await clock.advance(31_000);
  decoded.hold(key(2), read(61));
  assert.deepEqual(held(), [2, 3]);
});

test('another content under the number of a held upload is not found, and ends nothing that is held', () => {
  const decoded = createDecodedUploads(createTestClock(0), 100);
  decoded.hold(key(1), read(50));
  const forget = decoded.hold(key(1, 'b'), read(50, 'b'));
  assert.equal(decoded.find(key(1, 'b')), null);
  forget();
  assert.ok(decoded.find(key(1)));
});
