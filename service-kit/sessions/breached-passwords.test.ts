import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { createBreachedPasswords, passwordFault } from './index.ts';
import { digestLength, isLeaked } from './passwords.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-breached-'));
});
after(() => rm(folder, { recursive: true }));

const digestOf = (password: string) => createHash('sha1').update(password).digest('hex').toUpperCase();

async function writeList(name: string, passwords: readonly string[], newline: string): Promise<string> {
  const path = join(folder, name);
  const lines = passwords.map((password, at) => `${digestOf(password)}:${10 ** (at % 8)}`).sort();
  await writeFile(path, lines.join(newline) + newline);
  return path;
}

test('every password of the list is found and no other, for any length of the list and any line ends', async () => {
  for (const [size, newline] of [
    [1, '\n'],
    [2, '\r\n'],
    [3, '\n'],
    [700, '\r\n'],
  ] as const) {
    const passwords = Array.from({ length: size }, (_, at) => `leaked ${at}`);
    const path = await writeList(`list-${size}`, passwords, newline);
    const breached = createBreachedPasswords(path, 'SVC_X');
    for (const password of passwords) assert.ok(await breached.has(password), `${password} of ${size}`);
    for (let at = 0; at < 300; at += 1)
      assert.ok(!(await breached.has(`other ${at}`)), `other ${at} of ${size}`);
  }
});

test('a password of the list is refused with its reason, and a good one that is not on it is not', async () => {
  const owner = { email: 'ann@example.org', name: 'Ann' };
  const leaked = 'granite-ocelot-ladder-91';
  const path = await writeList('policy', [leaked, 'another'], '\n');
  const breached = createBreachedPasswords(path, 'SVC_X');
  assert.equal(await passwordFault(leaked, owner), null, 'common lists do not know it');
  assert.match((await passwordFault(leaked, owner, breached))!, /known leaks/);
  assert.equal(await passwordFault(`${leaked}!`, owner, breached), null);
});

test('what is no list is refused at the start; a list that went away refuses passwords instead of passing them', async () => {
  const refused = (error: unknown) => hasCode(error, 'config.invalid');
  for (const [name, text] of [
    ['empty', ''],
    ['passwords', 'password\n123456\n'],
    ['by-count', `${digestOf('b')}:9\n${digestOf('a')}:8\n`.split('\n').sort().reverse().join('\n')],
    ['lower', `${digestOf('a').toLowerCase()}:8\n`],
  ] as const) {
    const path = join(folder, name);
    await writeFile(path, text);
    assert.throws(() => createBreachedPasswords(path, 'SVC_X'), refused, name);
  }
  assert.throws(() => createBreachedPasswords(join(folder, 'missing'), 'SVC_X'), refused);
  const path = await writeList('gone', ['a', 'b'], '\n');
  const breached = createBreachedPasswords(path, 'SVC_X');
  await rm(path);
  await assert.rejects(breached.has('a good password'), /ENOENT/);
});

test('the most frequent leaked passwords that are long enough for our policy are refused, 3,000 and more of them', async () => {
  const list = await readFile(new URL('./leaked-passwords.bin', import.meta.url));
  assert.ok(list.length / digestLength > 30_000 && list.length % digestLength === 0, `${list.length} bytes`);
  for (let at = digestLength; at < list.length; at += digestLength)
    assert.ok(list.compare(list, at - digestLength, at, at, at + digestLength) > 0, `out of order at ${at}`);
  const owner = { email: 'ann@example.org', name: 'Ann' };
  for (const password of [
    'hjpjxrf23062007',
    'HJPJXRF23062007',
    'LockingServi',
    '1rus27540102',
    'cfvfzrhfcbdfz',
  ])
    assert.notEqual(await passwordFault(password, owner), null, password);
  assert.equal(await isLeaked('quiet-lantern-bridge-72'), false);
});
