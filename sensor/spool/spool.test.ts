import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { firstMinute, openSpool, sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import type { PendingUpload, Spool } from './index.ts';

const at = (index: number) => firstMinute + index * 60;
/** 128 letters that do not compress, the same for the same number. */
const longName = (number: number) => createHash('sha512').update(String(number)).digest('hex');

function opened(upload: PendingUpload | null): TelemetryUpload {
  assert.ok(upload, 'an upload waits');
  return decodeUpload(decompressUpload(upload.body, 'zstd'));
}

/** Takes everything off the queue as the uplink would. */
function drain(spool: Spool): TelemetryUpload[] {
  const uploads: TelemetryUpload[] = [];
  for (let next = spool.oldest(); next; next = spool.oldest()) {
    uploads.push(opened(next));
    spool.acknowledge(next, 'accepted');
  }
  return uploads;
}

test('uploads leave in the order they came, numbered from 1, and stay until their receipt is stored', (t) => {
  const directory = temporaryFolder(t);
  const first = openSpool(directory);
  first.spool.append([sampleMinute(at(0), 100)], []);
  first.spool.append([sampleMinute(at(1), 200)], []);
  assert.equal(opened(first.spool.oldest()).sequence, 1);
  assert.equal(opened(first.spool.oldest()).sequence, 1, 'reading does not take it off the queue');
  first.spool.acknowledge(first.spool.oldest()!, 'accepted');
  first.spool.close();

  const second = openSpool(directory);
  const upload = opened(second.spool.oldest());
  assert.equal(upload.sequence, 2);
  assert.equal(upload.minutes[0]!.totals.ipBytes, 200);
  assert.equal(second.spool.status().lastReceipt?.sequence, 1);
  assert.equal(second.spool.status().spoolId, upload.spoolId);
  second.spool.close();
});

test('a number is never used again, also after everything was delivered and the sensor restarted', (t) => {
  const directory = temporaryFolder(t);
  const first = openSpool(directory);
  first.spool.append([sampleMinute(at(0), 1)], []);
  drain(first.spool);
  first.spool.close();
  const second = openSpool(directory);
  second.spool.append([sampleMinute(at(1), 2)], []);
  assert.equal(opened(second.spool.oldest()).sequence, 2);
  second.spool.close();
});

test('a refused upload is replaced by an exact gap, keeps the gaps it carried, and frees its place', (t) => {
  const { spool } = openSpool(temporaryFolder(t));
  const down = { fromMinute: at(-9), toMinute: at(-1), capture: '', reason: 'sensor_down' as const };
  spool.append([sampleMinute(at(0), 1), { ...sampleMinute(at(0), 2), capture: 'br0' }], [down]);
  spool.append([sampleMinute(at(1), 3)], []);
  const gaps = spool.refuse(spool.oldest()!);
  const refused = { fromMinute: at(0), toMinute: at(0), capture: '', reason: 'refused' };
  assert.deepEqual(gaps, [refused, down]);
  const [replacement, next] = drain(spool);
  assert.deepEqual(replacement!.gaps, [refused, down]);
  assert.deepEqual(replacement!.minutes, []);
  assert.equal(replacement!.sequence, 3, 'it is an upload of its own');
  assert.equal(next!.minutes[0]!.totals.ipBytes, 3);
  spool.close();
});

test('a refused gap record is given up, so that refusals end', (t) => {
  const { spool } = openSpool(temporaryFolder(t));
  spool.append([], [{ fromMinute: at(0), toMinute: at(1), capture: '', reason: 'sensor_down' }]);
  assert.deepEqual(spool.refuse(spool.oldest()!), []);
  assert.equal(spool.oldest(), null);
  assert.equal(spool.status().lastReceipt?.receipt, 'refused');
  spool.close();
});

test('it knows after a restart which minutes were committed or are gaps', (t) => {
  const directory = temporaryFolder(t);
  const first = openSpool(directory);
  first.spool.append(
    [sampleMinute(at(5), 1)],
    [{ fromMinute: at(1), toMinute: at(3), capture: '', reason: 'sensor_down' }],
  );
  drain(first.spool);
  first.spool.close();
  const { spool } = openSpool(directory);
  const covered = [0, 1, 2, 3, 4, 5, 6].filter((index) => spool.isCovered(at(index)));
  assert.deepEqual(covered, [1, 2, 3, 5]);
  assert.equal(spool.coveredBefore(at(9)), at(5));
  assert.equal(spool.coveredBefore(at(5)), at(3));
  assert.equal(spool.coveredBefore(at(1)), null);
  spool.close();
});

test('NET-7.3: a full spool takes no more minutes, keeps all it has, and takes minutes again once there is room', (t) => {
  const { spool } = openSpool(temporaryFolder(t), 2 * 1024 * 1024);
  const big = (index: number) => {
    // These names do not compress, so each minute takes its space.
    const usage = Array.from({ length: 1000 }, (_, i) => ({
      client: '192.0.2.1',
      server: '192.0.2.2',
      protocol: 6,
      serverPort: 443,
      direction: 'outbound' as const,
      name: longName(index * 1000 + i),
      evidence: 'tls_sni' as const,
      clientBytes: 1,
      serverBytes: 1,
      packets: 2,
      clientLastSentMs: 0,
      serverLastSentMs: 0,
    }));
    return { ...sampleMinute(at(index), index), usage };
  };
  let stored = 0;
  assert.throws(
    () => {
      for (; stored < 1000; stored += 1) spool.append([big(stored)], []);
    },
    { code: 'spool.full' },
  );
  assert.ok(stored > 10 && stored < 1000);
  assert.equal(spool.isCovered(at(stored)), false);
  spool.append([], [{ fromMinute: at(stored), toMinute: at(stored), capture: '', reason: 'storage_full' }]);
  spool.acknowledge(spool.oldest()!, 'accepted');
  spool.append([big(stored + 1)], []);
  assert.deepEqual(
    drain(spool).map((upload) => upload.minutes[0]?.totals.ipBytes ?? 'gap'),
    [...Array.from({ length: stored - 1 }, (_, i) => i + 1), 'gap', stored + 1],
  );
  spool.close();
});

test('a covered minute is not accepted again, even with other contents', (t) => {
  const { spool } = openSpool(temporaryFolder(t));
  spool.append([sampleMinute(at(0), 1)], []);
  spool.append([], [{ fromMinute: at(1), toMinute: at(1), capture: '', reason: 'sensor_down' }]);
  for (const index of [0, 1]) spool.append([sampleMinute(at(index), 99)], []);
  assert.deepEqual(
    drain(spool).map((upload) => upload.minutes.map((one) => one.totals.ipBytes)),
    [[1], []],
  );
  spool.close();
});

test('what is too large for one upload goes as several, in order, and nothing is left out', (t) => {
  const { spool } = openSpool(temporaryFolder(t));
  const gaps = Array.from({ length: 9000 }, (_, i) => ({
    fromMinute: at(-20_000 + 2 * i),
    toMinute: at(-20_000 + 2 * i),
    capture: '',
    reason: 'storage_full' as const,
  }));
  const minutes = Array.from({ length: 100 }, (_, i) => ({ ...sampleMinute(at(0), i), capture: `eth${i}` }));
  spool.append(minutes, gaps);
  const uploads = drain(spool);
  assert.ok(uploads.every((one) => one.minutes.length <= 64 && one.gaps.length <= 4096));
  assert.deepEqual(
    uploads.map((one) => one.sequence),
    uploads.map((_, i) => i + 1),
  );
  assert.deepEqual(
    uploads.flatMap((one) => one.minutes.map((minute) => minute.capture)),
    minutes.map((minute) => minute.capture),
  );
  assert.deepEqual(
    uploads.flatMap((one) => one.gaps),
    gaps,
  );
  spool.close();
});

test('it says for how long an outage there is room, at the rate of the minutes it was given', (t) => {
  const { spool } = openSpool(temporaryFolder(t));
  assert.equal(spool.status().roomMinutes, null);
  spool.append([sampleMinute(at(0), 1)], []);
  const one = spool.status();
  const limit = 8 * 1024 * 1024 * 0.8;
  assert.ok(Math.abs(one.roomMinutes! - (limit - one.pendingBytes) / one.pendingBytes) < 2);
  for (let index = 1; index < 50; index += 1) spool.append([sampleMinute(at(index), 1)], []);
  assert.ok(Math.abs(spool.status().roomMinutes! - one.roomMinutes! + 49) < 200);
  spool.close();
});

test('a file that lost both its states is mended with the copy beside it', (t) => {
  const directory = temporaryFolder(t);
  const bytes = filledFile(directory, 6);
  const copy = readFileSync(join(directory, 'spool-state.json'));
  for (const [generation, length] of [100, 0].entries()) {
    writeFileSync(join(directory, `spool-${generation + 1}.sqlite`), bytes.subarray(0, length));
    if (generation > 0) writeFileSync(join(directory, 'spool-state.json'), copy);
    assert.deepEqual(fateOf(directory, 6), { sent: 0, gaps: 6, lost: 0, wrong: 0 }, `cut to ${length}`);
  }
});

test('two sensors can not share a spool', (t) => {
  const directory = temporaryFolder(t);
  const { spool } = openSpool(directory);
  assert.throws(() => openSpool(directory), { code: 'spool.in_use' });
  spool.close();
});

test('a folder that can not be used is said in words', (t) => {
  const directory = join(temporaryFolder(t), 'state');
  writeFileSync(directory, 'a file in its place');
  assert.throws(
    () => openSpool(directory),
    (error: Error & { code?: string }) => error.code === 'spool.failed' && error.message.includes(directory),
  );
});

test('the file and its folder are for their owner alone', (t) => {
  const directory = join(temporaryFolder(t), 'state');
  const { spool } = openSpool(directory);
  spool.append([sampleMinute(at(0), 1)], []);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  for (const name of readdirSync(directory)) {
    assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name);
  }
  spool.close();
});

test('an upload whose bytes changed on disk is not sent: an exact gap takes its place and the rest goes on', (t) => {
  const directory = temporaryFolder(t);
  const first = openSpool(directory);
  for (let index = 0; index < 3; index += 1) first.spool.append([sampleMinute(at(index), index)], []);
  first.spool.close();
  const db = new DatabaseSync(join(directory, 'spool-1.sqlite'));
  db.exec(`UPDATE uploads SET payload = CAST(payload || x'00' AS BLOB) WHERE position = 2`);
  db.close();
  const { spool } = openSpool(directory);
  const uploads = drain(spool);
  assert.deepEqual(
    uploads.map((one) => one.minutes.length),
    [1, 0, 1],
  );
  assert.deepEqual(uploads[1]!.gaps, [
    { fromMinute: at(1), toMinute: at(1), capture: '', reason: 'spool_damaged' },
  ]);
  spool.close();
});

test('a copy of an old spool takes new numbers instead of losing minutes to the old ones', (t) => {
  const directory = temporaryFolder(t);
  const { spool } = openSpool(directory);
  spool.append([sampleMinute(at(0), 1)], []);
  spool.append([sampleMinute(at(1), 2)], []);
  const before = spool.oldest()!;
  assert.equal(before.isNew, true);
  spool.renumber(before);
  const uploads = drain(spool);
  assert.deepEqual(
    uploads.map((one) => [one.sequence, one.minutes[0]!.totals.ipBytes]),
    [
      [1, 1],
      [2, 2],
    ],
  );
  assert.ok(uploads.every((one) => one.spoolId !== before.spoolId));
  spool.append([sampleMinute(at(2), 3)], []);
  assert.equal(opened(spool.oldest()).sequence, 3);
  spool.close();
});

/** A spool with delivered minutes and pending uploads, closed; returns its bytes. */
function filledFile(directory: string, pendingUploads: number, delivered = [at(0), at(1), at(2)]): Buffer {
  const { spool } = openSpool(directory);
  for (const [index, minute] of delivered.entries()) spool.append([sampleMinute(minute, index)], []);
  drain(spool);
  for (let index = 3; index < 3 + pendingUploads; index += 1) {
    const usage = Array.from({ length: 40 }, (_, i) => ({
      client: '192.0.2.1',
      server: '192.0.2.2',
      protocol: 6,
      serverPort: 443,
      direction: 'outbound' as const,
      name: longName(index * 1000 + i).slice(0, 60),
      evidence: 'tls_sni' as const,
      clientBytes: 1,
      serverBytes: 1,
      packets: 2,
      clientLastSentMs: 0,
      serverLastSentMs: 0,
    }));
    spool.append([{ ...sampleMinute(at(index), index), usage }], []);
  }
  spool.close();
  return readFileSync(join(directory, 'spool-1.sqlite'));
}

/** Opens what is there and says what became of each pending minute: sent, gap, or silently lost. */
function fateOf(
  directory: string,
  pendingUploads: number,
): { sent: number; gaps: number; lost: number; wrong: number } {
  const { spool } = openSpool(directory);
  const uploads = drain(spool);
  spool.close();
  const fate = { sent: 0, gaps: 0, lost: 0, wrong: 0 };
  for (let index = 3; index < 3 + pendingUploads; index += 1) {
    const minutes = uploads.flatMap((upload) => upload.minutes).filter((one) => one.minute === at(index));
    const isGap = uploads.some((upload) =>
      upload.gaps.some((gap) => gap.fromMinute <= at(index) && at(index) <= gap.toMinute),
    );
    if (minutes.length > 1 || (minutes[0] && minutes[0].totals.ipBytes !== index)) fate.wrong += 1;
    else if (minutes.length === 1) fate.sent += 1;
    else if (isGap) fate.gaps += 1;
    else fate.lost += 1;
  }
  return fate;
}

test('a file that was cut short or is no database goes aside; what is intact goes on under its old identity', (t) => {
  const pendingUploads = 12;
  const source = temporaryFolder(t);
  const bytes = filledFile(source, pendingUploads);
  const root = temporaryFolder(t);
  for (const length of [bytes.length - 4096, Math.floor(bytes.length / 2), 4096 * 3, 100]) {
    const directory = join(root, `cut-${length}`);
    mkdirSync(directory);
    writeFileSync(join(directory, 'spool-1.sqlite'), bytes.subarray(0, length));
    const fate = fateOf(directory, pendingUploads);
    assert.equal(fate.wrong, 0);
    if (length > 4096 * 4) assert.equal(fate.lost, 0, `cut to ${length}: ${JSON.stringify(fate)}`);
    const names = readdirSync(directory);
    assert.ok(names.includes('damaged-spool-1.sqlite') && names.includes('spool-2.sqlite'), names.join());
  }
});

test('a flipped bit that turns a column of text into bytes costs nothing', (t) => {
  const columns = { spool_id: 1, kind: 4, covers: 5 };
  for (const [name, column] of Object.entries(columns)) {
    const directory = temporaryFolder(t);
    const { spool } = openSpool(directory);
    for (let index = 0; index < 3; index += 1) spool.append([sampleMinute(at(index), index)], []);
    const { spoolId } = spool.status();
    spool.close();
    const path = join(directory, 'spool-1.sqlite');
    const bytes = readFileSync(path);
    // The header of a record stands right before its values; types of text are odd, those of bytes one less.
    const firstTypes = Buffer.from([0, 36 * 2 + 13]);
    let text = bytes.indexOf(spoolId);
    while (text - bytes.lastIndexOf(firstTypes, text) > 20) text = bytes.indexOf(spoolId, text + 1);
    const header = bytes.lastIndexOf(firstTypes, text);
    let type = header + 1;
    for (let i = 1; i < column; i += 1) while (bytes[type++]! & 0x80);
    while (bytes[type]! & 0x80) type += 1;
    assert.equal(bytes[type]! & 1, 1, `${name} is text`);
    bytes[type]! ^= 1;
    writeFileSync(path, bytes);
    const damaged = openSpool(directory);
    const uploads = drain(damaged.spool);
    damaged.spool.close();
    assert.deepEqual(
      uploads.map((one) => [one.spoolId, one.minutes.map(({ totals }) => totals.ipBytes), one.gaps.length]),
      [0, 1, 2].map((index) => [spoolId, [index], 0]),
      name,
    );
  }
});

test('a receipt of years ahead, by a clock that was wrong, takes nothing in a damaged file for delivered', (t) => {
  const directory = temporaryFolder(t);
  const bytes = filledFile(directory, 4, [at(0), at(5_000_000)]);
  bytes[2 * 4096 + 2] = 0xff;
  writeFileSync(join(directory, 'spool-1.sqlite'), bytes);
  const fate = fateOf(directory, 4);
  assert.equal(fate.lost + fate.wrong, 0, JSON.stringify(fate));
});

test('a salvage that was interrupted before the new file took its place begins again', (t) => {
  const directory = temporaryFolder(t);
  const bytes = filledFile(directory, 4);
  bytes[2 * 4096 + 2] = 0xff;
  writeFileSync(join(directory, 'spool-1.sqlite'), bytes);
  copyFileSync(join(directory, 'spool-1.sqlite'), join(directory, 'spool-2.sqlite.building'));
  const fate = fateOf(directory, 4);
  assert.equal(fate.lost + fate.wrong, 0);
});
