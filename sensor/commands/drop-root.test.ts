/** Users and capabilities of commands that root started. An ordinary user has nothing to give up. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findUser } from '#common/system-users/index.ts';
import { captureCapabilities } from '#sensor/privileges/index.ts';
import { pcapFile } from '#sensor/testing/capture-files.ts';
import { receiptFor, startFakeMonitor, uploadIn } from '#sensor/testing/fake-monitor.ts';
import { ethernetFrame, openFrameSender, udp4 } from '#sensor/testing/frame-sender.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { readPending } from '#sensor/testing/read-pending.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const command = ['--disable-warning=ExperimentalWarning', join(root, 'svc.ts'), 'sensor'];
const isRoot = process.getuid?.() === 0;
const needsRoot = { skip: isRoot ? false : 'needs root' };
const ordinaryUser = 65_534;
const netRaw = 1n << 13n;
const dacReadSearch = 1n << 2n;

/** What the kernel says of each thread of a process: user, capabilities, and whether it can gain any. */
function threadsOf(processId: number) {
  return readdirSync(`/proc/${processId}/task`).map((thread) => {
    const status = readFileSync(`/proc/${processId}/task/${thread}/status`, 'utf8');
    const words = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)![1]!.split('\t');
    const set = (name: string) => BigInt(`0x${words(name)[0]}`);
    return {
      users: [...new Set([...words('Uid'), ...words('Gid')].map(Number))],
      groups: words('Groups')[0]!.trim(),
      sets: ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map(set),
      gainsNone: words('NoNewPrivs')[0] === '1',
    };
  });
}

/** Checks that each thread has this user, and in each of its sets these capabilities alone. */
function assertReduced(processId: number, { uid, gid }: { uid: number; gid: number }, bits: bigint): void {
  const threads = threadsOf(processId);
  assert.ok(threads.length > 1);
  for (const one of threads)
    assert.deepEqual(one, {
      ...{ users: [...new Set([uid, gid])], groups: '', gainsNone: true },
      sets: Array(5).fill(bits),
    });
}

interface SensorOptions {
  /** Owner of its state directory. */
  owner?: number;
  /** Only root can enter the folder above that. */
  isHidden?: boolean;
  atWork?(processId: number): void;
}

async function runSensor(t: TestContext, settings: Record<string, string>, options: SensorOptions = {}) {
  const monitor = await startFakeMonitor(t, (request) =>
    request.path.endsWith('/plan')
      ? { status: 200, body: { plan_version: 1, local_cidrs: ['10.9.0.0/16'], protected_targets: [] } }
      : receiptFor(request),
  );
  const above = temporaryFolder(t);
  if (!options.isHidden) chmodSync(above, 0o755);
  const state = join(above, 'state');
  mkdirSync(state, { mode: 0o700 });
  const credential = `svcsen_${'a'.repeat(16)}_${'s'.repeat(43)}`;
  const identity = { sensor_id: 5, site_id: 1, site_name: 'Site', credential };
  writeFileSync(join(state, 'credential.json'), JSON.stringify(identity), { mode: 0o600 });
  const { owner = 0 } = options;
  // What an earlier run leaves.
  writeFileSync(join(state, 'unfinished-minutes.json'), '{}', { mode: 0o600 });
  const paths = [state, join(state, 'credential.json'), join(state, 'unfinished-minutes.json')];
  if (isRoot) for (const path of paths) chownSync(path, owner, owner);
  const child = spawn(process.execPath, [...command, 'run'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      SVC_MONITOR_URL: monitor.url,
      SVC_SENSOR_STATE_DIR: state,
      SVC_SENSOR_RING_MIB: '2',
      ...settings,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  let said = '';
  let isAtWork = false;
  for await (const piece of child.stderr) {
    said += piece;
    const listens = /capture listens|is replayed|CAP_NET_RAW/.test(said);
    // An ordinary user may lack the right to capture, which is reported too.
    if (isAtWork || !listens || !said.includes('sensor runs') || !said.includes('plan taken')) continue;
    isAtWork = true;
    options.atWork?.(child.pid!);
    child.kill('SIGTERM');
  }
  assert.deepEqual(await ended, [0, null], said);
  assert.ok(isAtWork, said);
  const uploads = monitor.requests.filter((request) => request.path.endsWith('/telemetry')).map(uploadIn);
  // At its end the sensor sends what it has, if there is time: else it waits in the spool, whose files keep their owner.
  const copy = join(above, 'copy');
  cpSync(state, copy, { recursive: true });
  const packets = [...uploads, ...readPending(copy)]
    .flatMap((upload) => upload.minutes)
    .reduce((sum, one) => sum + one.totals.packets, 0);
  return { said, state, packets };
}

test(
  'a sensor that root starts captures as a user of its own with CAP_NET_RAW alone, and says so',
  needsRoot,
  async (t) => {
    const [near, far] = [uniqueName(), uniqueName()];
    const ip = (...words: string[]) => assert.equal(spawnSync('ip', words).status, 0, words.join(' '));
    ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far);
    t.after(() => spawnSync('ip', ['link', 'del', near]));
    for (const name of [near, far]) ip('link', 'set', name, 'up');
    const sender = openFrameSender(far);
    t.after(() => sender.close());
    const { said, state, packets } = await runSensor(
      t,
      { SVC_SENSOR_CAPTURES: `uplink:${near}` },
      {
        atWork(processId) {
          assertReduced(processId, findUser('svc-sensor')!, netRaw);
          for (let i = 0; i < 100; i += 1)
            sender.send(ethernetFrame(0x0800, udp4('10.9.0.1', '198.51.100.2', 100)));
        },
      },
    );
    const { uid } = findUser('svc-sensor')!;
    assert.ok(packets >= 100, `${packets} packets\n${said}`);
    assert.match(
      said,
      new RegExp(`runs without the rights of root {2}user=${uid} {2}capabilities=cap_net_raw\n`),
    );
    // Root made them: in its own name, and by a sensor of an earlier version.
    for (const name of ['.', ...readdirSync(state)])
      assert.equal(lstatSync(join(state, name)).uid, uid, name);
  },
);

test('with tcpdump in the place of the ring it keeps no more; the owner of its files is who it goes on as, and may read all where only root can enter', async (t) => {
  const settings = { SVC_SENSOR_CAPTURES: 'uplink:lo', SVC_SENSOR_CAPTURE_METHOD: 'tcpdump' };
  const atWork = (processId: number) => {
    if (isRoot)
      return assertReduced(processId, { uid: ordinaryUser, gid: ordinaryUser }, netRaw | dacReadSearch);
    for (const { sets } of threadsOf(processId)) assert.equal(sets[2]! & ~netRaw, 0n);
  };
  const { said } = await runSensor(t, settings, { owner: ordinaryUser, isHidden: true, atWork });
  if (!isRoot) return;
  assert.match(said, /capture listens/);
  assert.match(said, /capabilities=cap_dac_read_search,cap_net_raw\n/);
});

test(
  "a folder of root's with other files in it stays root's: the command says why it goes on as root",
  needsRoot,
  (t) => {
    const state = temporaryFolder(t);
    writeFileSync(join(state, 'other.txt'), '');
    const { status, stderr } = spawnSync(
      process.execPath,
      [...command, 'enrol', '--token-file', '/nowhere'],
      {
        env: { ...process.env, SVC_SENSOR_STATE_DIR: state },
        encoding: 'utf8',
      },
    );
    assert.equal(status, 1);
    assert.match(stderr, /runs with all rights of root, .*has other\.txt, which is not the sensor's/);
    assert.equal(lstatSync(state).uid, 0);
  },
);

test("a capture file of root's alone is read without root's user and without the right to write", {
  ...needsRoot,
  timeout: 60_000,
}, async (t) => {
  const file = join(temporaryFolder(t), 'traffic.pcap');
  const frame = ethernetFrame(0x0800, udp4('192.0.2.1', '198.51.100.2', 100));
  const packet = { bytes: frame, seconds: 1_700_000_000, nanoseconds: 0 };
  writeFileSync(file, pcapFile([packet]), { mode: 0o600 });
  const detected = spawnSync(process.execPath, [...command, 'detect', file, '--json'], { encoding: 'utf8' });
  assert.equal(detected.status, 0, detected.stderr);
  for (const name of ['read', 'detect']) {
    const child = spawn(process.execPath, [...command, name, '-'], { stdio: ['pipe', 'ignore', 'ignore'] });
    t.after(() => child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    const isReduced = (status: string) =>
      /^Uid:(\s+[1-9]\d*){4}$/m.test(status) &&
      /^NoNewPrivs:\s+1$/m.test(status) &&
      /^CapBnd:\s+0+$/m.test(status);
    // Setpriv changes one after the other.
    while (!isReduced(readFileSync(`/proc/${child.pid}/status`, 'utf8'))) await wait(20);
    child.stdin.end();
    await ended;
  }
});

test('the packaged service has the capabilities that a sensor of root keeps', () => {
  const unit = readFileSync(join(root, 'packaging/svc-sensor/svc-sensor.service'), 'utf8');
  for (const name of ['AmbientCapabilities', 'CapabilityBoundingSet'])
    assert.match(unit, new RegExp(`^${name}=CAP_${captureCapabilities.join(' CAP_').toUpperCase()}$`, 'm'));
});
