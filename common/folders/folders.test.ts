// Own process: it sets a variable of its environment.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { giveTree, makeFolderOf, makeFolders, removeTree, spawnInside } from './index.ts';

const isRoot = process.getuid?.() === 0;
const needsRoot = { skip: isRoot ? false : 'needs root' };
const lesser = { uid: 65_534, gid: 65_534 };
const other = { uid: 65_533, gid: 65_533 };

function folderIn(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-folders-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('folders are made down to the last, which has the mode asked for, and making them again is nothing', (t) => {
  const path = join(folderIn(t), 'a', 'b', 'c');
  makeFolders(path, 0o700);
  makeFolders(path);
  assert.equal(statSync(path).mode & 0o777, 0o700);
});

test('where nothing can be made it fails instead of trying for ever', () => {
  assert.throws(() => makeFolders('/proc/nothing/at/all'), /ENOENT/);
  assert.throws(() => makeFolders('/etc/passwd/folder'), /ENOTDIR/);
  assert.throws(() => makeFolders('/etc/passwd'), /EEXIST/);
});

test(
  'root gives a user the folder that it makes, and none that a link or another user has there',
  needsRoot,
  (t) => {
    const above = folderIn(t);
    const aim = join(above, 'aim');
    mkdirSync(aim);
    symlinkSync(aim, join(above, 'link'));
    assert.equal(makeFolderOf(join(above, 'link'), lesser), false);
    assert.equal(statSync(aim).uid, 0);
    assert.equal(makeFolderOf(join(above, 'made'), lesser), true);
    const { uid, gid, mode } = lstatSync(join(above, 'made'));
    assert.deepEqual([uid, gid, mode & 0o777], [lesser.uid, lesser.gid, 0o700]);
    assert.equal(makeFolderOf(join(above, 'made'), lesser), true, 'once more');
    assert.equal(makeFolderOf(join(above, 'made'), other), false);
  },
);

test(
  "root hands over what a folder's owner has in it, and neither what links name nor what is another's",
  needsRoot,
  (t) => {
    const above = folderIn(t);
    const tree = join(above, 'tree');
    const aim = join(above, 'aim');
    mkdirSync(join(tree, 'inner'), { recursive: true });
    writeFileSync(aim, 'kept');
    writeFileSync(join(tree, 'inner/own'), '');
    symlinkSync(aim, join(tree, 'inner/link'));
    linkSync(aim, join(tree, 'hard'));
    for (const path of ['.', 'inner', 'inner/own']) chownSync(join(tree, path), lesser.uid, lesser.gid);
    giveTree(tree, other);
    for (const path of ['.', 'inner', 'inner/own'])
      assert.equal(statSync(join(tree, path)).uid, other.uid, path);
    assert.equal(statSync(aim).uid, 0);
    removeTree(join(tree, 'inner/link'));
    removeTree(tree);
    assert.equal(existsSync(tree), false);
    assert.equal(readFileSync(aim, 'utf8'), 'kept');
  },
);

test(
  "what runs in a lesser user's folder has that user's rights, and not the caller's environment",
  needsRoot,
  async (t) => {
    const above = folderIn(t);
    const folder = join(above, 'folder');
    const aim = join(above, 'aim');
    writeFileSync(aim, 'kept', { mode: 0o600 });
    makeFolderOf(folder, lesser);
    symlinkSync(aim, join(folder, 'link'));
    process.env.SVC_EXAMPLE_SECRET = 'q7hT2mXz9LpW4cRk';
    t.after(() => delete process.env.SVC_EXAMPLE_SECRET);
    const script =
      'env > environment; id -u > user; grep -E "^(NoNewPrivs|Cap)" /proc/self/status > rights; echo x > link';
    const child = spawnInside(folder, ['sh', '-c', script], { stdio: 'ignore' });
    const [code] = await once(child, 'exit');
    assert.notEqual(code, 0);
    assert.equal(readFileSync(aim, 'utf8'), 'kept');
    assert.equal(readFileSync(join(folder, 'user'), 'utf8'), `${lesser.uid}\n`);
    assert.doesNotMatch(readFileSync(join(folder, 'environment'), 'utf8'), /SVC_EXAMPLE_SECRET/);
    const rights = readFileSync(join(folder, 'rights'), 'utf8');
    assert.match(rights, /NoNewPrivs:\s1/);
    for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
      assert.match(rights, new RegExp(`Cap${set}:\\s0+\\n`), set);
  },
);
