import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type CodedError, hasCode } from '#common/errors/index.ts';
import { readConfig } from '#monitor/config.ts';
import type { ObjectStore } from './object-store.ts';
import { chooseStore, createFolderStore, createS3Store } from './object-store.ts';
import { startS3Server } from './testing/s3-server.ts';

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-evidence-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const bytes = Buffer.from('a capture file, in a way');

async function keepsObjects(objects: ObjectStore) {
  assert.equal(await objects.get('site-1/a.pcap.zst'), null);
  await objects.remove('site-1/a.pcap.zst');
  await objects.put('site-1/a.pcap.zst', bytes);
  await objects.put('site-1/b.pcap.zst', Buffer.from('other'));
  await objects.put('site-1/a.pcap.zst', bytes);
  assert.deepEqual(Buffer.from((await objects.get('site-1/a.pcap.zst'))!), bytes);
  await objects.remove('site-1/a.pcap.zst');
  await objects.remove('site-1/a.pcap.zst');
  assert.equal(await objects.get('site-1/a.pcap.zst'), null);
  assert.deepEqual(Buffer.from((await objects.get('site-1/b.pcap.zst'))!), Buffer.from('other'));
  await objects.check();
}

test('a folder keeps objects, and removes what a killed process left beside one', async (t) => {
  const folder = join(folderOf(t), 'evidence');
  const objects = createFolderStore(folder);
  await objects.check();
  assert.ok(!existsSync(folder), 'a check makes nothing');
  await objects.put('site-1/x', bytes);
  await objects.remove('site-1/x');
  await keepsObjects(objects);
  writeFileSync(join(folder, 'site-1/b.pcap.zst.0000.part'), 'half');
  await objects.remove('site-1/b.pcap.zst');
  assert.deepEqual(readdirSync(join(folder, 'site-1')), []);
});

test('a folder that is gone or is none is an error with its name', async (t) => {
  const folder = folderOf(t);
  const gone = createFolderStore(join(folder, 'gone'));
  await assert.rejects(gone.remove('site-1/a'), (error) => hasCode(error, 'evidence.store_unavailable'));
  writeFileSync(join(folder, 'file'), '');
  const wrong = createFolderStore(join(folder, 'file'));
  await assert.rejects(wrong.put('site-1/a', bytes), /the folder .*file\) does not work: ENOTDIR/);
});

const isRoot = process.getuid?.() === 0;
test('a full disk is an error that says what to do, and leaves nothing half', {
  skip: !isRoot && 'mounts a disk',
}, async (t) => {
  const folder = folderOf(t);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], {
    encoding: 'utf8',
  });
  assert.equal(mounted.status, 0, mounted.stderr);
  using _ = { [Symbol.dispose]: () => spawnSync('umount', [folder]) };
  const objects = createFolderStore(folder);
  await objects.put('site-1/a', bytes);
  await assert.rejects(objects.put('site-1/b', Buffer.alloc(100_000)), (error: CodedError) => {
    assert.equal(error.code, 'evidence.store_full');
    assert.match(error.message, /is full. Make room there; sensors send their files again/);
    return true;
  });
  assert.deepEqual(readdirSync(join(folder, 'site-1')), ['a']);
  await objects.put('site-1/b', bytes);
});

test('a bucket keeps objects; every request is signed', async (t) => {
  await using server = await startS3Server();
  await keepsObjects(createS3Store(server.settings));
  assert.deepEqual(await server.keys(), ['site-1/b.pcap.zst']);
  await t.test('a wrong secret is refused, and no message has a key or a secret', async () => {
    const wrong = createS3Store({ ...server.settings, secretAccessKey: 'another-secret-altogether' });
    const key = 'site-1/b.pcap.zst';
    for (const call of [
      wrong.check,
      () => wrong.put('k', bytes),
      () => wrong.get(key),
      () => wrong.remove(key),
    ])
      await assert.rejects(call, (error: CodedError) => {
        assert.equal(error.code, 'evidence.store_unavailable');
        assert.match(
          error.message,
          /the bucket evidence at http:\/\/127\.0\.0\.1:\d+\) does not work: .*403/,
        );
        assert.doesNotMatch(error.message, /AKID|secret/);
        return true;
      });
    assert.deepEqual(await server.keys(), ['site-1/b.pcap.zst']);
  });
  await t.test('a store that fails or is full says so', async () => {
    const objects = createS3Store(server.settings);
    await server.answerWith(500);
    await assert.rejects(objects.put('k', bytes), /status 500/);
    await server.answerWith(507);
    await assert.rejects(objects.put('k', bytes), (error) => hasCode(error, 'evidence.store_full'));
    await server.answerWith(0);
    await objects.put('k', bytes);
  });
});

test('a bucket that does not answer is an error and no missing object', async () => {
  const server = await startS3Server();
  await server[Symbol.asyncDispose]();
  const objects = createS3Store(server.settings);
  for (const call of [
    () => objects.get('k'),
    () => objects.put('k', bytes),
    () => objects.remove('k'),
    objects.check,
  ])
    await assert.rejects(call, (error) => hasCode(error, 'evidence.store_unavailable'));
});

test('settings that contradict one another are refused with what to do', () => {
  const choose = (environment: Record<string, string>) => chooseStore(readConfig(environment));
  const bucket = { SVC_MONITOR_EVIDENCE_S3_BUCKET: 'evidence' };
  assert.match(choose({ SVC_DATA_DIR: '/srv/svc' }).place, /^the folder \/srv\/svc\/monitor\/evidence$/);
  assert.match(choose({ SVC_MONITOR_EVIDENCE_FOLDER: '/srv/files' }).place, /^the folder \/srv\/files$/);
  assert.match(choose(bucket).place, /^the bucket evidence at Amazon S3, us-east-1$/);
  const refused: [Record<string, string>, RegExp][] = [
    [{ SVC_MONITOR_EVIDENCE_S3_ENDPOINT: 'https://s3.example.com' }, /S3_BUCKET must name/],
    [{ ...bucket, SVC_MONITOR_EVIDENCE_FOLDER: '/srv/files' }, /not both/],
    [{ ...bucket, SVC_MONITOR_EVIDENCE_S3_ACCESS_KEY_ID: 'a' }, /Set both/],
    [{ ...bucket, SVC_MONITOR_EVIDENCE_S3_ENDPOINT: 'http://s3.example.com' }, /not encrypted.*Use https/],
  ];
  for (const [environment, message] of refused) assert.throws(() => choose(environment), message);
});
