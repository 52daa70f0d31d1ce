// Slow: reads files while each read of the process is delayed.
/**
 * Compressed files read beside others, with every read of the process delayed by strace, so that late reads become
 * visible.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { seededRandom } from '#common/random/index.ts';
import { canTrace } from '#sensor/testing/can-trace.ts';
import { seedFiles } from '#sensor/testing/file-mutations.ts';

const program = fileURLToPath(new URL('../../svc.ts', import.meta.url));
const delayed = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=read', '-e', 'inject=read:delay_enter=20000'];

test('NET-2.2.6: a thread that decompresses a file never reads from the file that is opened next', (t) => {
  if (!canTrace(t)) return;
  const folder = mkdtempSync(join(tmpdir(), 'svc-read-packed-'));
  try {
    const { bytes } = seedFiles(seededRandom(5))[0]!;
    const contents = {
      'a.gz': gzipSync(bytes),
      'b.pcap': bytes,
      'c.zst': zstdCompressSync(bytes),
      'd.pcap': bytes,
    };
    const files = Object.entries(contents).map(([name, content]) => {
      const path = join(folder, name);
      writeFileSync(path, content);
      return path;
    });
    const node = [
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      program,
      'sensor',
      'read',
      '--json',
    ];
    const packetsOf = (command: readonly string[]) => {
      const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), { encoding: 'utf8' });
      assert.deepEqual([status, stderr], [0, '']);
      return (JSON.parse(stdout) as { capture: { packets: number } }).capture.packets;
    };
    const ofOne = packetsOf([...node, files[1]!]);
    assert.equal(packetsOf(['strace', ...delayed, ...node, ...files]), 4 * ofOne);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
