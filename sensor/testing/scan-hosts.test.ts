import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { openScanHosts } from './scan-hosts.ts';
import { runFor } from './tool-link.ts';

const tcp = [22, 25, 80, 110, 143, 443, 3306, 6379];
const udp = [53, 123];

test('the guests of the benchmark of scans are as it says: ten services, a firewall with three, and silence', async (t) => {
  const can = process.getuid?.() === 0 && ['/usr/bin/nmap', '/usr/sbin/nft'].every((one) => existsSync(one));
  assert.ok(can || !process.env.CI, 'this test needs root, nmap, iproute2 and nftables');
  if (!can) {
    t.diagnostic('left out: needs root, nmap, iproute2 and nftables');
    return;
  }
  const hosts = await openScanHosts(['open', 'firewalled', 'silent']);
  t.after(() => hosts.close());
  const openPorts = async (address: string): Promise<string[]> => {
    const ports = `T:${[...tcp, 21].join(',')},U:${[...udp, 161].join(',')}`;
    const nmap = ['nmap', '-n', '-Pn', '-sS', '-sU', '-T4', '--max-rtt-timeout', '200ms', '-p', ports];
    const said = await runFor([...hosts.hypervisor, ...nmap, '-oG', '-', address], 60);
    return [...said.matchAll(/(\d+)\/open\/(tcp|udp)/g)].map(([, port, of]) => `${of} ${port}`);
  };
  const [open, firewalled, silent] = hosts.addresses as [string, string, string];
  assert.deepEqual(await openPorts(open), [...tcp.map((one) => `tcp ${one}`), 'udp 53', 'udp 123']);
  assert.deepEqual(await openPorts(firewalled), ['tcp 22', 'tcp 443', 'udp 53']);
  const before = hosts.received(2);
  assert.deepEqual(await openPorts(silent), []);
  assert.ok(hosts.received(2) >= before + 11, 'each port was asked');
});
