import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeUpload, decompressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { firstMinute, openSpool, sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';

const at = (index: number) => firstMinute + index * 60;

/** A minute whose upload takes about 60 KiB, because random names do not compress. */
function bigMinute(index: number) {
  const usage = Array.from({ length: 1000 }, () => ({
    client: '192.0.2.1',
    server: '192.0.2.2',
    protocol: 6,
    serverPort: 443,
    direction: 'outbound' as const,
    name: randomBytes(60).toString('hex'),
    evidence: 'tls_sni' as const,
    clientBytes: 1,
    serverBytes: 1,
    packets: 2,
    clientLastSentMs: 0,
    serverLastSentMs: 0,
  }));
  return { ...sampleMinute(at(index), index), usage };
}

test('NET-7.3: a disk without room refuses new minutes, loses none that it has, and goes on once there is room', (t) => {
  if (process.getuid?.() !== 0) {
    assert.ok(!process.env.CI, 'this test needs root to mount a small disk: run the gate as root in CI');
    t.diagnostic('left out: needs root to mount a small disk');
    return;
  }
  const disk = join(temporaryFolder(t), 'disk');
  mkdirSync(disk);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', disk]);
  assert.equal(mounted.status, 0, String(mounted.stderr));
  try {
    // The file may grow far beyond the disk, so it is the disk that ends first.
    const { spool } = openSpool(join(disk, 'state'), 64 * 1024 * 1024);
    let stored = 0;
    assert.throws(
      () => {
        for (; stored < 1000; stored += 1) spool.append([bigMinute(stored)], []);
      },
      { code: 'spool.full' },
    );
    assert.ok(stored >= 10 && stored < 80, `${stored} minutes on a disk of 6 MiB`);
    assert.equal(spool.status().pendingUploads, stored);
    assert.equal(spool.isCovered(at(stored)), false);
    spool.close();

    const reopened = openSpool(join(disk, 'state'), 64 * 1024 * 1024).spool;
    assert.equal(reopened.status().pendingUploads, stored, 'all are there after a restart on the full disk');
    const sizes: number[] = [];
    for (let upload = reopened.oldest(); upload; upload = reopened.oldest()) {
      sizes.push(decodeUpload(decompressUpload(upload.body, 'zstd')).minutes[0]!.totals.ipBytes);
      reopened.acknowledge(upload, 'accepted');
    }
    assert.deepEqual(
      sizes,
      Array.from({ length: stored }, (_, i) => i),
    );
    for (let index = 0; index < 5; index += 1) reopened.append([bigMinute(stored + index)], []);
    assert.equal(reopened.isCovered(at(stored + 4)), true);
    reopened.close();
  } finally {
    spawnSync('umount', [disk]);
  }
});
