import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { type BackupTarget, backUp, restore } from './backup.ts';
import { createDatabase, type EmbeddedUse } from './index.ts';

const uses: readonly EmbeddedUse[] = ['own', 'join', 'existing'];

function placeIn(programDir: string) {
  const target: BackupTarget = {
    program: 'monitor',
    urlSetting: 'SVC_X_URL',
    url: null,
    programDir,
    reporter: silentReporter,
  };
  const start = async (embedded: EmbeddedUse, url: string | null) => {
    const database = createDatabase({ ...target, url, embedded, migrations: programDir });
    await database.start();
    await database.stop();
  };
  return { target, start };
}

function folderOf(t: { after(end: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-place-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('where a program had a database by URL, no process without the URL uses an embedded one, and a backup is refused', async (t) => {
  const folder = folderOf(t);
  const { target, start } = placeIn(folder);
  await assert.rejects(
    start('own', 'postgres://svc:bq7RkWz1xLd0ytFh@127.0.0.1:1/monitor'),
    /SVC_X_URL does not answer/,
  );
  const elsewhere =
    /^CodedError: The database of monitor is 127\.0\.0\.1:1\/monitor \(SVC_X_URL\), and SVC_X_URL is not set/;
  for (const use of uses) await assert.rejects(start(use, null), elsewhere);
  await assert.rejects(backUp(target, join(folder, 'file')), elsewhere);
  await assert.rejects(restore(target, join(folder, 'file')), elsewhere);
  assert.deepEqual(readdirSync(folder), ['database-url']);
});

test('a command makes no database where there is none', async (t) => {
  const folder = folderOf(t);
  await assert.rejects(
    placeIn(folder).start('existing', null),
    /There is no database of monitor in .*SVC_DATA_DIR or SVC_X_URL.*\.\/svc monitor serve/,
  );
  assert.deepEqual(readdirSync(folder), []);
});
