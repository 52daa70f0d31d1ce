import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { retentionRefusalMessage } from '#contracts/sensor-api/http.ts';
import { compressUpload, encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  type MonitorWorld,
  testMinute,
  usageRow,
} from '#monitor/testing/index.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';

/** A consumer that does this at each batch, after everything else. */
function atBatch(apply: UploadConsumer<TelemetryUpload>['apply']): UploadConsumer<TelemetryUpload> {
  return { kind: 'test', select: ({ upload }) => upload, apply };
}

/** Uploads that overlap in every way: two captures, several minutes, one window twice, a gap. */
function manyUploads(spool = createSpool()): TelemetryUpload[] {
  const uploads: TelemetryUpload[] = [];
  for (let i = 0; i < 6; i += 1) {
    const minute = testMinute + Math.floor(i / 2) * 60;
    const hosts = [
      host('192.0.2.10', 1000 + i, 100 + i, 'br0|02:00:00:00:00:01'),
      host('2001:db8::10', 7, 8),
    ];
    const usage = [usageRow({ clientBytes: 10 + i }), usageRow({ name: 'example.org', serverBytes: 5 * i })];
    uploads.push(
      spool.upload(
        [
          captureMinute({ minute, observedMs: 30_000, hosts, usage }),
          captureMinute({ minute, capture: 'br0', role: 'bridge', observedMs: 30_000, hosts }),
        ],
        i === 3
          ? [
              {
                fromMinute: testMinute - 600,
                toMinute: testMinute - 120,
                capture: 'eth0',
                reason: 'capture_failed',
              },
            ]
          : [],
      ),
    );
  }
  return uploads;
}

const states = (world: MonitorWorld) =>
  world.rows<{ state: string; attempts: number }>('select state, attempts from inbox_uploads order by id');

test('NET-2.2.9: an upload applies once, however often it is delivered before and after it was applied', async () => {
  await using world = await createMonitorWorld();
  const uploads = manyUploads();
  await world.apply(...uploads);
  const once = await world.dumpFacts();
  assert.ok(once.length > 15);
  for (const upload of uploads) assert.equal(await world.send(upload), 'duplicate');
  await world.inbox.drain();
  assert.deepEqual(await world.dumpFacts(), once);
});

test('deliveries that meet before either is stored are one upload', async () => {
  await using world = await createMonitorWorld();
  const upload = createSpool().upload([captureMinute({ hosts: [host('192.0.2.10', 5, 6)] })]);
  // This lock blocks inserts, so both have looked without a result before the first of them stores.
  const gate = await world.database.pool.connect();
  await gate.query('begin');
  await gate.query('lock table inbox_uploads in share mode');
  const body = compressUpload(encodeUpload(upload));
  const other = world.anotherInbox();
  // Two processes, and one of them twice.
  const sending = [world.inbox, world.inbox, other].map(
    async (inbox) => (await inbox.receive(world.sensor, body, 'zstd')).receipt,
  );
  for (let waiting = 0; waiting < 2; ) {
    const { rows } = await gate.query(
      'select count(*) as waiting from pg_locks join pg_database d on d.oid = database where not granted and datname = current_database()',
    );
    waiting = rows[0].waiting;
  }
  await gate.query('commit');
  gate.release();
  assert.deepEqual((await Promise.all(sending)).toSorted(), ['accepted', 'duplicate', 'duplicate']);
  await world.inbox.drain();
  const rows = await world.rows<{ rx: string }>('select rx_bytes as rx from host_minutes');
  assert.deepEqual(rows, [{ rx: 5 }]);
});

test('NET-2.2.9: different uploads of one window add; owners that disagree or are unknown clear the device key', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  const part = (rx: number, key: string, other: string) =>
    spool.upload([
      captureMinute({
        observedMs: 20_000,
        hosts: [host('192.0.2.10', rx, 1, key), host('192.0.2.11', rx, 1, other)],
      }),
    ]);
  await world.apply(part(1, 'br0|a', 'br0|a'), part(20, 'br0|a', 'br0|b'), part(300, 'br0|a', 'br0|b'));
  const rowsOf = async (address: string) =>
    (await world.traffic.explainAddress(world.siteId, address, testMinute, testMinute + 60)).map(
      ({ rxBytes, txBytes, deviceKey }) => [rxBytes, txBytes, deviceKey],
    );
  assert.deepEqual(await rowsOf('192.0.2.10'), [[321, 3, 'br0|a']]);
  assert.deepEqual(await rowsOf('192.0.2.11'), [[321, 3, '']]);
  const [capture] = await world.rows<object>('select observed_ms, packets from capture_minutes');
  assert.deepEqual(capture, { observed_ms: 60_000, packets: 300 });
});

test('uploads give the same facts in every order of arrival', async () => {
  const dumps: string[][] = [];
  for (const order of [
    [0, 1, 2, 3, 4, 5],
    [5, 4, 3, 2, 1, 0],
    [3, 0, 5, 1, 4, 2],
  ]) {
    await using world = await createMonitorWorld();
    const uploads = manyUploads();
    for (const i of order) {
      await world.send(uploads[i]!);
      if (i % 2 === 0) await world.inbox.drain();
    }
    await world.inbox.drain();
    dumps.push(await world.dumpFacts());
  }
  assert.deepEqual(dumps[1], dumps[0]);
  assert.deepEqual(dumps[2], dumps[0]);
});

test('several workers at once apply each upload once', async () => {
  await using world = await createMonitorWorld();
  const sensors = [world.sensor, await world.enrol('node-2'), await world.enrol('node-3')];
  let sent = 0;
  for (const sensor of sensors) {
    for (const upload of manyUploads()) {
      await world.send(upload, sensor);
      sent += 1;
    }
  }
  const workers = [world.inbox, ...Array.from({ length: 3 }, () => world.anotherInbox())];
  await Promise.all(workers.map((worker) => worker.drain()));
  // A share whose lease another worker held is that worker's; when all have returned nothing is left.
  assert.equal((await states(world)).filter(({ state }) => state === 'applied').length, sent);
  const [sum] = await world.rows<object>(
    'select sum(rx_bytes)::int as rx, count(distinct (minute, capture_id))::int as rows from host_minutes where address = $1',
    ['192.0.2.10'],
  );
  assert.deepEqual(sum, { rx: 3 * 2 * (6 * 1000 + 15), rows: 3 * 2 * 3 });
});

test('a failure in the middle of applying leaves nothing behind, and the next attempt everything', async () => {
  let failures = 2;
  await using world = await createMonitorWorld({
    plusConsumer: atBatch(async (trx) => {
      if (failures === 0) return;
      failures -= 1;
      const before = await trx.selectFrom('host_minutes').selectAll().execute();
      assert.ok(before.length > 0, 'facts were written before the failure');
      throw new Error('planned failure');
    }),
  });
  const [upload] = manyUploads();
  await world.send(upload!);
  await world.inbox.drain();
  assert.deepEqual(await states(world), [{ state: 'applied', attempts: 2 }]);
  const rows = await world.rows<object>('select rx_bytes as rx from host_minutes where address = $1', [
    '192.0.2.10',
  ]);
  assert.deepEqual(rows, [{ rx: 1000 }, { rx: 1000 }]);
});

test('facts and the end of their upload stand or fall with one commit', async () => {
  await using world = await createMonitorWorld();
  // The check of a deferred constraint runs at commit, so the first commit that ends the upload fails.
  await world.rows(`
    create sequence commits;
    create function fail_first() returns trigger language plpgsql as
      $$ begin if nextval('commits') = 1 then raise 'planned failure of the commit'; end if; return null; end $$;
    create constraint trigger fail_first after update of state on inbox_uploads deferrable initially deferred
      for each row when (new.state = 'applied') execute function fail_first()`);
  await world.apply(createSpool().upload([captureMinute({ hosts: [host('192.0.2.10', 5, 6)] })]));
  assert.deepEqual(await states(world), [{ state: 'applied', attempts: 1 }]);
  assert.deepEqual(await world.rows<object>('select rx_bytes as rx from host_minutes'), [{ rx: 5 }]);
});

test('a worker that was taken over between claiming and writing writes nothing', async () => {
  await using world = await createMonitorWorld();
  await world.send(manyUploads()[0]!);
  const late = world.anotherInbox({
    plusConsumer: {
      ...atBatch(() => Promise.reject(new Error('applied'))),
      async prepare() {
        await world.rows(
          "update leases set term = term + 1, holder = 'another', expires_at = svc_now() + interval '1 minute'",
        );
      },
    },
  });
  await late.drain();
  assert.deepEqual(await states(world), [{ state: 'pending', attempts: 0 }]);
  assert.deepEqual(await world.dumpFacts(), []);
  await world.rows('update leases set expires_at = svc_now()');
  await world.inbox.drain();
  // Its follower can't know whether the upload was why it froze.
  assert.deepEqual(await states(world), [{ state: 'applied', attempts: 1 }]);
});

test('NET-6.2: an upload that keeps failing is skipped after five attempts with its event and its gap, and holds up no other', async () => {
  await using world = await createMonitorWorld({
    plusConsumer: atBatch(async (_trx, uploads) => {
      const isPoison = uploads.some(({ minutes }) => minutes.some(({ capture }) => capture === 'poison'));
      if (isPoison) throw new Error('this minute can not be applied');
    }),
  });
  const spool = createSpool();
  await world.apply(
    spool.upload([captureMinute({ capture: 'poison', hosts: [host('192.0.2.66', 1, 1)] })]),
    spool.upload([captureMinute({ hosts: [host('192.0.2.10', 5, 6)] })]),
  );
  assert.deepEqual(await states(world), [
    { state: 'rejected', attempts: 5 },
    { state: 'applied', attempts: 0 },
  ]);
  const events = await world.events.list(world.siteId, 10);
  assert.deepEqual(
    events.map(({ kind, sensorId, details }) => ({ kind, sensorId, details })),
    [
      {
        kind: 'telemetry_rejected',
        sensorId: world.sensor.id,
        details: { sequence: 1, spool_id: spool.id, error: 'this minute can not be applied' },
      },
    ],
  );
  const gaps = await world.traffic.listGaps(world.siteId, testMinute * 1000, (testMinute + 60) * 1000, 10);
  assert.deepEqual(
    gaps.map(({ fromMinute, toMinute, reason }) => ({ fromMinute, toMinute, reason })),
    [{ fromMinute: testMinute, toMinute: testMinute, reason: 'rejected' }],
  );
  assert.equal((await world.rows("select 1 from host_minutes where address = '192.0.2.66'")).length, 0);
});

test('NET-6.2: a worker that ends in the middle counts as an attempt; the fifth skips the upload, and no other waits for it', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  const poison = spool.upload([captureMinute({ capture: 'poison', hosts: [host('192.0.2.66', 1, 1)] })]);
  const next = spool.upload([captureMinute({ hosts: [host('192.0.2.10', 5, 6)] })]);
  await world.send(poison);
  await world.send(next);
  // As if killed: it is told nothing and can say nothing, and its lease runs out.
  const ends = Promise.withResolvers<void>();
  const drained: Promise<void>[] = [];
  const begun: string[][] = [];
  for (let death = 1; death <= 5; death += 1) {
    const dying = Promise.withResolvers<void>();
    const worker = world.anotherInbox({
      plusConsumer: atBatch(async (_trx, uploads) => {
        const captures = uploads.flatMap(({ minutes }) => minutes.map(({ capture }) => capture));
        begun.push(captures);
        if (!captures.includes('poison')) return;
        dying.resolve();
        await ends.promise;
        throw new Error('ended');
      }),
    });
    drained.push(worker.drain().catch(() => {}));
    await dying.promise;
    // What its server does when the connection of a killed process is gone.
    await world.rows(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'",
    );
    await world.rows("update leases set expires_at = svc_now() - interval '1 second'");
  }
  await world.inbox.drain();
  ends.resolve();
  await Promise.all(drained);
  assert.deepEqual(begun, [['poison', 'eth0'], ['poison'], ['eth0'], ['poison'], ['poison'], ['poison']]);
  assert.deepEqual(await states(world), [
    { state: 'rejected', attempts: 5 },
    { state: 'applied', attempts: 1 },
  ]);
  const [event] = await world.events.list(world.siteId, 10);
  assert.deepEqual(
    [event?.kind, event?.details],
    [
      'telemetry_rejected',
      { sequence: 1, spool_id: spool.id, error: 'the worker ended while it applied this upload' },
    ],
  );
});

test('trouble of the database itself never counts as an attempt', async () => {
  let cuts = 7;
  await using world = await createMonitorWorld({
    plusConsumer: atBatch(async (trx) => {
      if (cuts === 0) return;
      cuts -= 1;
      const { sql } = await import('kysely');
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx);
    }),
  });
  await world.send(manyUploads()[0]!);
  for (let i = 0; i < 7; i += 1) await assert.rejects(world.inbox.drain());
  await world.inbox.drain();
  assert.deepEqual(await states(world), [{ state: 'applied', attempts: 0 }]);
});

test('NET-7.1: minutes older than three months are refused with the exact words; their gap is taken; what was applied stays a duplicate', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  const applied = spool.upload([captureMinute()]);
  await world.apply(applied);
  await moveDatabaseClock(world.database, '93 days');
  assert.equal(await world.send(applied), 'duplicate');
  await assert.rejects(world.send(spool.upload([captureMinute()])), {
    code: 'telemetry.refused',
    message: retentionRefusalMessage,
  });
  assert.equal(retentionRefusalMessage, 'minute telemetry is older than the retention window');
  const gap = { fromMinute: testMinute, toMinute: testMinute, capture: '', reason: 'refused' as const };
  assert.equal(await world.send(spool.upload([], [gap])), 'accepted');
});

test('NET-7.1: of an upload whose first minutes are older than three months the others are stored', async () => {
  await using world = await createMonitorWorld();
  await moveDatabaseClock(world.database, '93 days');
  const young = testMinute + 93 * 86_400;
  await world.apply(createSpool().upload([captureMinute(), captureMinute({ minute: young })]));
  const { rows } = await world.database.pool.query<{ at: number }>(
    'select distinct extract(epoch from minute)::float8 as at from capture_minutes',
  );
  assert.deepEqual(rows, [{ at: young }]);
});

test('another upload under a used number is refused', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  const first = spool.upload([captureMinute()]);
  await world.send(first);
  await assert.rejects(world.send({ ...first, minutes: [captureMinute({ observedMs: 1 })] }), {
    code: 'telemetry.refused',
    message: /used that sequence for another upload/,
  });
});

test('NET-8: tombstones go after two days once every number before them is finished, and their numbers stay duplicates', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  const uploads = Array.from({ length: 5 }, () => spool.upload([captureMinute()]));
  for (const upload of uploads.filter(({ sequence }) => sequence !== 4)) await world.send(upload);
  await world.inbox.drain();
  await moveDatabaseClock(world.database, '1 day 23 hours');
  assert.equal(await world.inbox.prune(), 0, 'too young');
  await moveDatabaseClock(world.database, '2 days 1 minute');
  assert.equal(await world.inbox.prune(), 3, 'the hole at 4 keeps 5');
  for (const sequence of [1, 2, 3, 5]) assert.equal(await world.send(uploads[sequence - 1]!), 'duplicate');
  assert.equal(await world.send(uploads[3]!), 'accepted');
  await world.inbox.drain();
  await moveDatabaseClock(world.database, '5 days');
  assert.equal(await world.inbox.prune(), 2);
  for (const upload of uploads) assert.equal(await world.send(upload), 'duplicate');
  const [capture] = await world.rows<{ packets: number }>('select packets from capture_minutes');
  assert.deepEqual(capture, { packets: 500 });
});

test('what is no upload is refused before anything is stored', async () => {
  await using world = await createMonitorWorld();
  const body = compressUpload(encodeUpload(createSpool().upload([captureMinute()])));
  await assert.rejects(world.inbox.receive(world.sensor, body.subarray(1), 'zstd'), {
    code: 'telemetry.malformed',
  });
  await assert.rejects(world.inbox.receive(world.sensor, body, 'br'), {
    code: 'telemetry.encoding_unsupported',
  });
  await assert.rejects(world.inbox.receive(world.sensor, new Uint8Array(), undefined), {
    code: 'telemetry.malformed',
  });
  assert.deepEqual(await states(world), []);
});

test('a running worker applies an upload when it is received, not at its next look', async () => {
  const seen = Promise.withResolvers<void>();
  // Time stands still, so the worker's pause ends only when it is woken.
  const clock = createTestClock(Date.now());
  await using world = await createMonitorWorld({
    clock,
    plusConsumer: atBatch(async () => seen.resolve()),
  });
  await world.inbox.worker.start();
  await world.send(createSpool().upload([captureMinute()]));
  await seen.promise;
  await world.inbox.worker.stop();
  assert.deepEqual(await states(world), [{ state: 'applied', attempts: 0 }]);
});
