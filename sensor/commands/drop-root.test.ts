/** Capabilities of a sensor that root started. An ordinary user has none to drop. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { receiptFor, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';

const svc = fileURLToPath(new URL('../../svc.ts', import.meta.url));
const isRoot = process.getuid?.() === 0;
const ordinaryUser = 65_534;
const bits = { dacOverride: 1n << 1n, setgid: 1n << 6n, setuid: 1n << 7n, netRaw: 1n << 13n };

async function capabilitiesOf(t: TestContext, settings: Record<string, string>, owner = 0) {
  const monitor = await startFakeMonitor(t, (request) =>
    request.path.endsWith('/plan')
      ? { status: 200, body: { plan_version: 1, local_cidrs: ['127.0.0.0/8'], protected_targets: [] } }
      : receiptFor(request),
  );
  const state = join(temporaryFolder(t), 'state');
  mkdirSync(state, { mode: 0o700 });
  const credential = `svcsen_${'a'.repeat(16)}_${'s'.repeat(43)}`;
  const identity = { sensor_id: 5, site_id: 1, site_name: 'Site', credential };
  writeFileSync(join(state, 'credential.json'), JSON.stringify(identity), { mode: 0o600 });
  if (isRoot) for (const path of [state, join(state, 'credential.json')]) chownSync(path, owner, owner);
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', svc, 'sensor', 'run'], {
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
  let status = '';
  for await (const piece of child.stderr) {
    said += piece;
    // An ordinary user may lack the right to capture, which is reported too.
    if (
      status === '' &&
      /capture listens|is replayed|CAP_NET_RAW/.test(said) &&
      said.includes('sensor runs')
    ) {
      status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      child.kill('SIGTERM');
    }
  }
  assert.deepEqual(await ended, [0, null], said);
  const set = (name: string) => BigInt(`0x${new RegExp(`^${name}:\\s*(\\w+)`, 'm').exec(status)![1]}`);
  return { effective: set('CapEff'), bounding: set('CapBnd'), said };
}

test('a sensor that root starts keeps CAP_NET_RAW alone, captures with it, and says so', async (t) => {
  const { effective, bounding, said } = await capabilitiesOf(t, { SVC_SENSOR_CAPTURES: 'uplink:lo' });
  if (!isRoot) return assert.equal(effective & ~bits.netRaw, 0n, 'an ordinary user has nothing more');
  assert.deepEqual([effective, bounding], [bits.netRaw, bits.netRaw], said);
  assert.match(said, /runs as root with these capabilities alone {2}kept=cap_net_raw\n/);
  assert.match(said, /capture listens/);
});

test('with tcpdump in the place of the ring it may also keep its user and groups', async (t) => {
  const settings = { SVC_SENSOR_CAPTURES: 'uplink:lo', SVC_SENSOR_CAPTURE_METHOD: 'tcpdump' };
  const { effective, said } = await capabilitiesOf(t, settings);
  if (!isRoot) return assert.equal(effective & ~bits.netRaw, 0n);
  assert.equal(effective, bits.netRaw | bits.setuid | bits.setgid, said);
  assert.match(said, /capture listens/);
});

test('with files of another user root keeps CAP_DAC_OVERRIDE, and says so', async (t) => {
  const replay = fileURLToPath(new URL('../../demo/recording.pcap', import.meta.url));
  const { effective, said } = await capabilitiesOf(t, { SVC_SENSOR_REPLAY: replay }, ordinaryUser);
  if (!isRoot) return assert.equal(effective & ~bits.netRaw, 0n);
  assert.equal(effective, bits.netRaw | bits.dacOverride, said);
  assert.match(said, /kept=cap_dac_override,cap_net_raw\n/);
});
