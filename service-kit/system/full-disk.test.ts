// Slow: makes a database server on a disk of its own.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createPool } from '#service-kit/postgres/database.ts';
import { embeddedIn } from '#service-kit/postgres/testing/embedded-server.ts';
import { createWriteCheck } from './database-watch.ts';

test('a database whose disk is full answers reads and fails the check of writes', {
  skip: process.getuid?.() === 0 ? false : 'mounting a disk takes root',
}, async () => {
  const folder = mkdtempSync('/tmp/svc-small-disk-');
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=200m,mode=755', 'tmpfs', folder]);
  const server = embeddedIn(join(folder, 'postgres'));
  try {
    await server.start();
    const { pool, db } = createPool(server.url, 2);
    // Each has its own memory of a success.
    const check = () => createWriteCheck(() => db)();
    assert.equal(await check(), null);
    assert.throws(() => {
      for (;;) appendFileSync(join(folder, 'filler'), Buffer.alloc(65_536));
    }, /ENOSPC/);
    assert.deepEqual((await pool.query('select 1 as one')).rows, [{ one: 1 }]);
    assert.equal(await check(), 'takes no writes: no space left on its disk');
    rmSync(join(folder, 'filler'));
    assert.equal(await check(), null);
    await db.destroy();
  } finally {
    await server.stop();
    execFileSync('umount', [folder]);
    rmSync(folder, { recursive: true });
  }
});
