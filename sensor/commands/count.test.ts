import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ethernetFrame, openFrameSender, udp4 } from '#sensor/testing/frame-sender.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { until } from '#service-kit/testing/until.ts';

const svc = fileURLToPath(new URL('../../svc.ts', import.meta.url));

test('count prints what an interface carried while it ran, by address, and leaves nothing at the interface', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const [here, there] = [uniqueName(), uniqueName()];
  execFileSync('ip', ['link', 'add', here, 'type', 'veth', 'peer', 'name', there]);
  t.after(() => spawnSync('ip', ['link', 'del', here]));
  for (const end of [here, there]) {
    spawnSync('sh', ['-c', `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`]);
    execFileSync('ip', ['link', 'set', end, 'arp', 'off', 'up']);
  }
  const tc = (what: string) => execFileSync('tc', [what, 'show', 'dev', here], { encoding: 'utf8' });
  const filters = () =>
    spawnSync('tc', ['filter', 'show', 'dev', here, 'egress'], { encoding: 'utf8' }).stdout;
  const words = [
    'sensor',
    'count',
    '--interface',
    here,
    '--local',
    '192.0.2.0/24',
    '--seconds',
    '5',
    '--json',
  ];
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', svc, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (piece) => {
    said += piece;
  });
  await until('the interface is counted', 120_000, () => filters().includes('direct-action'));
  const sender = openFrameSender(there);
  for (const bytes of [100, 200]) sender.send(ethernetFrame(0x0800, udp4('203.0.113.1', '192.0.2.1', bytes)));
  sender.send(ethernetFrame(0x0806, Buffer.alloc(46)));
  sender.close();
  await once(child, 'close');
  assert.equal(child.exitCode, 0);
  assert.deepEqual(JSON.parse(said), {
    ...{ interface: here, seconds: 5, method: 'kernel', why: null },
    totals: { packets: 3, ipPackets: 2, ipBytes: 356, nonIpPackets: 1, parserDropped: 0, kernelDropped: 0 },
    hosts: [{ address: '192.0.2.1', rxBytes: 356, txBytes: 0, packets: 2 }],
  });
  assert.ok(!tc('qdisc').includes('clsact'));
});
