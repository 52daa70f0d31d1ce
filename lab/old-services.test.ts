// Slow: scans the services of a lab with nmap.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identifyService } from '#monitor/vulnerabilities/identify-service.ts';
import { readNmapEvidence } from '#monitor/vulnerabilities/index.ts';
import { needsRoot, startLab } from './testing/lab-tests.ts';
import { serviceSetOf } from './traffic/old-services.ts';

test('guests have the sets of services in turn', () => {
  assert.deepEqual(['vm-1', 'vm-2', 'vm-3', 'vm-4', 'vm-100', 'mail'].map(serviceSetOf), [
    'old_releases',
    'packages',
    'other_programs',
    'old_releases',
    'old_releases',
    'old_releases',
  ]);
});

test(
  'nmap names the services of guests: versions to look up, packages, and programs without records',
  needsRoot,
  async (t) => {
    const lab = await startLab(t, { hasOldServices: true });
    for (const number of [1, 2, 3])
      await lab.put({
        name: `vm-${number}`,
        mac: `52:54:00:00:00:1${number}`,
        addresses: [{ address: `203.0.113.1${number}` }, { address: `2001:db8:113::1${number}` }],
      });
    const scan = async (address: string) => {
      const family = address.includes(':') ? ['-6'] : [];
      const words = ['-n', '-Pn', '-T4', '-sV', '--version-intensity', '9', '-p', '22,25,3306,6379,8080'];
      const xml = await lab.execInHypervisor(['nmap', ...family, ...words, '-oX', '-', address]);
      return readNmapEvidence(xml).map(({ port, evidence }) => {
        const { product, reason } = identifyService(evidence);
        return `${port} ${evidence.product} ${evidence.version} ${product?.key ?? 'no product'} ${reason}`;
      });
    };
    const oldReleases = [
      '22 OpenSSH 8.9 openssh null',
      '25 Postfix smtpd null no product unknown_product',
      '3306 MySQL 5.7.40 mysql null',
      '6379 Redis key-value store 6.0.15 redis null',
      '8080 nginx 1.18.0 nginx null',
    ];
    const addresses = ['203.0.113.11', '2001:db8:113::11', '203.0.113.12', '203.0.113.13'];
    const [first, firstIpv6, second, third] = await Promise.all(addresses.map(scan));
    assert.deepEqual(first, oldReleases);
    assert.deepEqual(firstIpv6, oldReleases);
    assert.deepEqual(second, [
      '22 OpenSSH 9.6p1 Ubuntu 3ubuntu13.5 openssh distribution_package',
      '3306 MySQL 8.0.36-0ubuntu0.22.04.1 mysql distribution_package',
      '8080 nginx 1.24.0 nginx null',
    ]);
    assert.deepEqual(third, [
      '22 Dropbear sshd 2022.83 no product unknown_product',
      '25 Postfix smtpd null no product unknown_product',
      '8080 lighttpd 1.4.69 no product unknown_product',
    ]);
  },
);
