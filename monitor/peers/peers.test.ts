import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { readNetwork } from './index.ts';
import { createNetworkFiles } from './network-file.ts';
import { networkFile } from './testing/network-file.ts';

test('a typed network is an address, a kept network or a shorter prefix; host bits are dropped', () => {
  const prefix = (text: string) => readNetwork(text)?.prefix;
  assert.deepEqual(readNetwork('203.0.113.77'), { prefix: '203.0.113.0/24', isWidened: true });
  assert.deepEqual(readNetwork(' 203.0.113.77/24 '), { prefix: '203.0.113.0/24', isWidened: false });
  assert.deepEqual(readNetwork('203.0.113.64/26'), { prefix: '203.0.113.0/24', isWidened: true });
  assert.equal(prefix('203.0.113.64/20'), '203.0.112.0/20');
  assert.equal(prefix('0.0.0.0/0'), '0.0.0.0/0');
  assert.equal(prefix('2001:DB8:1:2::5'), '2001:db8:1::/48');
  assert.equal(prefix('2001:db8:ffff::/33'), '2001:db8:8000::/33');
  assert.equal(prefix('2001:db8::/129'), undefined);
  for (const wrong of [
    '',
    'example.net',
    '203.0.113',
    '203.0.113.0/33',
    '203.0.113.0/-1',
    '1.2.3.4/24/3',
    '/24',
  ])
    assert.equal(readNetwork(wrong), null, wrong);
});

test('files of networks name AS and country, in the fields of MaxMind, DB-IP and IPinfo', async () => {
  using folder = createFolder();
  const first = folder.write('as.mmdb', {
    '203.0.113.0/24': { autonomous_system_number: 64_500, autonomous_system_organization: 'Example Transit' },
    '198.51.100.0/24': { asn: 'AS64501', as_name: 'Example Hosting', country_code: 'NL' },
    '192.0.2.0/24': { asn: 'AS<b>', as_name: 'x', country_code: '<i>' },
  });
  const second = folder.write('country.mmdb', {
    '203.0.113.0/24': { country: { iso_code: 'DE' } },
    '198.51.100.0/24': { country: { iso_code: 'FR' } },
    '2001:db8::/32': { country: { iso_code: 'SE' } },
  });
  const files = createNetworkFiles([first, second], silentReporter);
  const nothing = { asNumber: null, asName: null, country: null };
  const addresses = ['203.0.113.0', '198.51.100.0', '2001:db8:1::', '192.0.2.0', '233.252.0.0'];
  assert.deepEqual(await files.describe(addresses), [
    { asNumber: 64_500, asName: 'Example Transit', country: 'DE' },
    { asNumber: 64_501, asName: 'Example Hosting', country: 'NL' },
    { ...nothing, country: 'SE' },
    nothing,
    nothing,
  ]);
  assert.equal(files.fault(), null);
});

test('a file of networks that is missing or damaged is a fault in words, and the others are read', async () => {
  using folder = createFolder();
  const good = folder.write('good.mmdb', { '203.0.113.0/24': { country: { iso_code: 'DE' } } });
  const damaged = join(folder.path, 'damaged.mmdb');
  writeFileSync(damaged, 'not a database');
  for (const bad of [join(folder.path, 'missing.mmdb'), damaged]) {
    const files = createNetworkFiles([bad, good], silentReporter);
    assert.deepEqual(
      (await files.describe(['203.0.113.0'])).map(({ country }) => country),
      ['DE'],
    );
    assert.match(files.fault()!, new RegExp(`network file ${bad} can't be read`));
  }
});

test('a file of networks with a flipped byte in its tree or its records is a fault in words until it is replaced', async () => {
  using folder = createFolder();
  const networks = { '203.0.113.0/24': { country: { iso_code: 'DE' } } };
  const path = folder.write('flipped.mmdb', networks);
  const files = createNetworkFiles([path], silentReporter);
  const countryOf = async () => (await files.describe(['203.0.113.0']))[0]!.country;
  assert.equal(await countryOf(), 'DE');
  const whole = readFileSync(path);
  // Of the record that the address's node leads to, and the type of the record.
  const record = whole.indexOf('country') - 2;
  for (const [at, byte] of [
    [whole.indexOf(Buffer.alloc(16)) - 4, 0xff],
    [record, 0x42],
  ] as const) {
    const damaged = Buffer.from(whole);
    damaged[at] = byte;
    writeFileSync(`${path}.new`, damaged);
    renameSync(`${path}.new`, path);
    files.forget();
    assert.equal(await countryOf(), null);
    for (let look = 0; look < 2; look += 1) {
      assert.equal(files.fault(), `The network file ${path} can't be read: it is damaged`);
      files.forget();
      await countryOf();
    }
    writeFileSync(`${path}.new`, whole);
    renameSync(`${path}.new`, path);
    files.forget();
    assert.equal(await countryOf(), 'DE');
    assert.equal(files.fault(), null);
  }
});

function createFolder() {
  const path = mkdtempSync(join(tmpdir(), 'svc-networks-'));
  return {
    path,
    write(name: string, records: Parameters<typeof networkFile>[0]) {
      writeFileSync(join(path, name), networkFile(records));
      return join(path, name);
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true }),
  };
}
