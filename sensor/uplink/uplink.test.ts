import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Clock } from '#common/clock/index.ts';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import { retentionRefusalMessage } from '#contracts/sensor-api/http.ts';
import { createMonitorClient, withCredential } from '#sensor/monitor-client/index.ts';
import {
  type FakeAnswer,
  type ReceivedRequest,
  receiptFor,
  refusal,
  startFakeMonitor,
  uploadIn,
} from '#sensor/testing/fake-monitor.ts';
import { passTime } from '#sensor/testing/pass-time.ts';
import {
  firstMinute,
  openSpool,
  type SpoolFixture,
  sampleMinute,
  temporaryFolder,
} from '#sensor/testing/sample-minutes.ts';
import { createUplink } from './index.ts';

const at = (index: number) => firstMinute + index * 60;
const credential = 'svcsen_3_secretsecret';

async function fixture(
  t: TestContext,
  answer: (request: ReceivedRequest, index: number) => FakeAnswer,
  fill: (spool: SpoolFixture['spool']) => void,
) {
  const opened = openSpool(temporaryFolder(t));
  fill(opened.spool);
  const monitor = await startFakeMonitor(t, answer);
  const log: string[] = [];
  const waits: number[] = [];
  const clock: Clock = {
    ...opened.clock,
    wait(ms, signal) {
      waits.push(ms);
      return opened.clock.wait(ms, signal);
    },
  };
  const uplink = createUplink({
    spool: opened.spool,
    client: withCredential(createMonitorClient(monitor.url), credential),
    clock,
    reporter: createReporter({ program: 'sensor', write: (line) => log.push(line) }),
    random: () => 1,
  });
  await uplink.start();
  t.after(async () => {
    await uplink.stop();
    opened.spool.close();
  });
  return {
    ...opened,
    monitor,
    uplink,
    log,
    /** Every pause that the uplink took, milliseconds. */
    waits,
    /** Moves time on until this many requests have come. */
    until: (count: number) => passTime(opened.clock, () => monitor.requests.length >= count),
    /** Waits until nothing is pending. */
    empty: () => passTime(opened.clock, () => opened.spool.status().pendingUploads === 0),
  };
}

const two = (spool: SpoolFixture['spool']) => {
  spool.append([sampleMinute(at(0), 10)], []);
  spool.append([sampleMinute(at(1), 20)], []);
};

test('uploads travel in order, compressed, under the sensor credential, and leave the spool with their receipt', async (t) => {
  const f = await fixture(t, (request) => receiptFor(request), two);
  await f.empty();
  assert.deepEqual(
    f.monitor.requests.map((request) => uploadIn(request).sequence),
    [1, 2],
  );
  const { method, path, headers } = f.monitor.requests[0]!;
  assert.deepEqual([method, path], ['POST', '/agent/v1/telemetry']);
  assert.equal(headers.authorization, `Bearer ${credential}`);
  assert.equal(headers['content-type'], 'application/x-protobuf');
  assert.equal(headers['content-encoding'], 'zstd');
  assert.equal(f.spool.status().lastReceipt?.sequence, 2);
});

test('an upload whose acknowledgement was lost is sent again under the same number, byte for byte', async (t) => {
  const answers = (request: ReceivedRequest, index: number) =>
    index === 0 ? { status: 0, cut: true } : receiptFor(request, index === 1 ? 'duplicate' : 'accepted');
  const f = await fixture(t, answers, two);
  await f.empty();
  assert.deepEqual(
    f.monitor.requests.map((request) => uploadIn(request).sequence),
    [1, 1, 2],
  );
  assert.deepEqual(f.monitor.requests[0]!.body, f.monitor.requests[1]!.body);
});

test('server errors, proxies and answers that are no receipt keep the upload, tried again without end', async (t) => {
  const trouble: FakeAnswer[] = [
    refusal(500, 'broken'),
    refusal(503, 'busy'),
    { status: 404, body: 'not found' },
    { status: 301, headers: { location: 'http://127.0.0.1:1/' } },
    { status: 200, body: { ok: true } },
    { status: 200, body: { spool_id: 'another', sequence: 1, receipt: 'accepted' } },
    ...[400, 413, 422].map((status) => ({ status, body: 'a page of some proxy' })),
    { status: 0, cut: true },
  ];
  const f = await fixture(t, (request, index) => trouble[index] ?? receiptFor(request), two);
  await f.until(trouble.length);
  assert.equal(f.spool.status().pendingUploads, 2);
  await f.empty();
  const sequences = f.monitor.requests.map((request) => uploadIn(request).sequence);
  assert.deepEqual(sequences, [...trouble.map(() => 1), 1, 2]);
});

test('attempts grow apart up to a minute, and Retry-After is heeded', async (t) => {
  const f = await fixture(
    t,
    (_, index) => refusal(503, 'busy', index === 8 ? { 'retry-after': '300' } : {}),
    two,
  );
  await f.until(10);
  assert.deepEqual(
    f.waits.slice(0, 9),
    [1, 2, 4, 8, 16, 32, 60, 60, 300].map((seconds) => seconds * 1000),
  );
});

test('NET-7.1: a refused upload is never sent again; an exact gap goes in its place and the reason is logged', async (t) => {
  const answers = (request: ReceivedRequest, index: number) =>
    index === 0 ? refusal(422, retentionRefusalMessage) : receiptFor(request);
  const f = await fixture(t, answers, two);
  await f.empty();
  const uploads = f.monitor.requests.map(uploadIn);
  assert.deepEqual(
    uploads.map((upload) => [upload.sequence, upload.minutes.length]),
    [
      [1, 1],
      [3, 0],
      [2, 1],
    ],
  );
  assert.deepEqual(uploads[1]!.gaps, [
    { fromMinute: at(0), toMinute: at(0), capture: '', reason: 'refused' },
  ]);
  assert.ok(
    f.log.some((line) => line.includes(retentionRefusalMessage)),
    f.log.join('\n'),
  );
});

for (const status of [400, 413]) {
  test(`status ${status} means never again, too`, async (t) => {
    const f = await fixture(
      t,
      (request, index) => (index === 0 ? refusal(status, 'no') : receiptFor(request)),
      (spool) => spool.append([sampleMinute(at(0), 1)], []),
    );
    await f.empty();
    assert.deepEqual(
      f.monitor.requests.map((request) => uploadIn(request).minutes.length),
      [1, 0],
    );
  });
}

test('NET-9.2: a monitor that does not know Zstandard gets the same upload as gzip, then plain, and never loses it', async (t) => {
  const known = (request: ReceivedRequest) => request.headers['content-encoding'] ?? 'identity';
  const f = await fixture(
    t,
    (request, index) => {
      if (index === 0) return { status: 415 };
      if (known(request) === 'identity') return receiptFor(request);
      const error = { code: 'telemetry_encoding_unsupported', message: 'only plain' };
      return { status: 400, body: { error } };
    },
    two,
  );
  await f.empty();
  assert.deepEqual(f.monitor.requests.map(known), ['zstd', 'gzip', 'identity', 'identity']);
  assert.deepEqual(
    f.monitor.requests.map((request) => [uploadIn(request).sequence, uploadIn(request).minutes.length]),
    [
      [1, 1],
      [1, 1],
      [1, 1],
      [2, 1],
    ],
  );
});

test('a monitor that understands no encoding is in trouble: the upload stays and is tried again', async (t) => {
  const f = await fixture(t, (request, index) => (index < 6 ? { status: 415 } : receiptFor(request)), two);
  await f.until(6);
  assert.equal(f.spool.status().pendingUploads, 2);
  await f.empty();
  assert.deepEqual(f.waits.slice(0, 2), [1000, 2000]);
});

test('while uploads fail the log says how many wait and for how many hours there is room', async (t) => {
  const f = await fixture(t, () => refusal(503, 'busy'), two);
  await f.until(2);
  const line = f.log.find((one) => one.includes('upload failed'));
  assert.match(line ?? '', /pending=2 .*room_hours=\d{2,}/);
});

test('a denied credential keeps everything, is said, and is tried again slowly', async (t) => {
  const answers = (request: ReceivedRequest, index: number) =>
    index < 2 ? refusal(index === 0 ? 401 : 403, 'unknown sensor') : receiptFor(request);
  const f = await fixture(t, answers, two);
  await f.until(2);
  assert.equal(f.waits[0], 120_000);
  assert.equal(f.spool.status().pendingUploads, 2);
  await f.empty();
  assert.ok(f.log.some((line) => line.includes('unknown sensor')));
});

test('a duplicate of what was never sent means an old copy of the spool: nothing is lost to the old numbers', async (t) => {
  const answers = (request: ReceivedRequest, index: number) =>
    receiptFor(request, index === 0 ? 'duplicate' : 'accepted');
  // The fixture's spool was opened before these were made, as in a sensor that has just started.
  const f = await fixture(t, answers, two);
  await f.empty();
  const uploads = f.monitor.requests.map(uploadIn);
  assert.deepEqual(
    uploads.map((upload) => upload.minutes[0]!.totals.ipBytes),
    [10, 10, 20],
  );
  assert.notEqual(uploads[1]!.spoolId, uploads[0]!.spoolId);
});

test('a new upload is sent at once, and stopping while nothing is sent takes no time', async (t) => {
  const f = await fixture(
    t,
    (request) => receiptFor(request),
    () => {},
  );
  f.spool.append([sampleMinute(at(0), 1)], []);
  f.uplink.wake();
  await f.monitor.received(1);
});

test('NET-8.5: an upload waits 45 seconds for its receipt, and none goes beside it', async (t) => {
  const { spool, clock } = openSpool(temporaryFolder(t));
  two(spool);
  const timeouts: number[] = [];
  const uplink = createUplink({
    spool,
    client: {
      url: 'http://127.0.0.1:1',
      request({ timeoutMs, signal }) {
        timeouts.push(timeoutMs);
        return new Promise((_, reject) =>
          signal?.addEventListener('abort', () => reject(new Error('stopped'))),
        );
      },
    },
    clock,
    reporter: silentReporter,
  });
  await uplink.start();
  uplink.wake();
  await clock.advance(600_000);
  assert.deepEqual(timeouts, [45_000]);
  const stopped = uplink.stop();
  await clock.advance(2000);
  await stopped;
  assert.equal(spool.status().pendingUploads, 2, 'what had no receipt stays');
  spool.close();
});
