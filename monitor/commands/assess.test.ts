// Slow: runs commands as processes.
/** The commands of potential vulnerabilities: each as a process of its own once, else in this one. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, mock, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { compose, type Monitor } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { records } from '#monitor/vulnerabilities/testing/records/index.ts';
import { type Nvd, startNvd } from '#monitor/vulnerabilities/testing/start-nvd.ts';
import { type AssessOptions, assess } from './assess.ts';
import { refreshVulnerabilities } from './refresh-vulnerabilities.ts';

const program = fileURLToPath(new URL('../../svc.ts', import.meta.url));
const key = '11111111-2222-3333-4444-555555555555';
const openssh = { product: 'OpenSSH' };

let folder: string;
let serving: Monitor;
let settings: Record<string, string>;
let nvd: Nvd;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-assess-'));
  nvd = await startNvd();
  settings = { SVC_DATA_DIR: folder, SVC_NVD_URL: nvd.url, SVC_LOG_LEVEL: 'error' };
  // As `serve` does: the commands use its embedded database.
  serving = compose(readConfig(settings));
  await serving.database.start();
  await serving.database.pool.query(
    "insert into leases (name, holder, term, acquired_at, expires_at) values ('refresh_vulnerabilities', 'serve', 1, now(), now() + interval '1 hour')",
  );
});
after(async () => {
  await serving.database.stop();
  await nvd[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** A command as a process. */
async function monitor(args: string[], more: Record<string, string> = {}) {
  const child = spawn(process.execPath, [program, 'monitor', ...args], {
    env: { ...process.env, ...settings, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { out, err, code };
}

/** What a command of this process prints. */
async function printed(command: Promise<number>): Promise<string> {
  const write = mock.method(process.stdout, 'write', () => true);
  try {
    assert.equal(await command, 0);
    return write.mock.calls.map((call) => String((call.arguments as unknown[])[0])).join('');
  } finally {
    write.mock.restore();
  }
}

/** A folder with one feed file. */
function makeFeed(name: string, file: string, content: string | Buffer): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, file), content);
  return path;
}

const feedOf = (vulnerabilities: readonly unknown[], timestamp = '2025-11-01T03:00:00.123') =>
  JSON.stringify({ format: 'NVD_CVE', version: '2.0', timestamp, totalResults: 1, vulnerabilities });

test('feed files of a folder fill the copy, packed or not; assess reads it', async () => {
  const before = await monitor(['assess', '--cpe', 'cpe:/a:openbsd:openssh:9.6p1', '--json']);
  assert.equal(JSON.parse(before.out).reason, 'no_database');
  const half = Math.floor(records.length / 2);
  const path = makeFeed(
    'feeds',
    'nvdcve-2.0-2023.json',
    feedOf([...records.slice(0, half), { cve: 'broken' }]),
  );
  makeFeed(
    'feeds',
    'nvdcve-2.0-2024.json.gz',
    gzipSync(feedOf(records.slice(half), '2025-11-02T03:00:00.000')),
  );
  const imported = await monitor(['refresh_vulnerabilities', '--from', path]);
  assert.equal(imported.code, 0, imported.err);
  assert.match(imported.out, /nvdcve-2\.0-2023\.json: \d+ records, \d+ of known products, 1 unreadable/);
  // Also beside a program that refreshes, which keeps its lease.
  assert.match(imported.out, /OpenSSH +16 records, .* old, 3 deferred/);

  const cpe = 'cpe:2.3:a:openbsd:openssh:9.6:p1:*:*:*:*:*:*';
  const one = await printed(assess(settings, { cpe, json: true }));
  const { assessment, reason, findings, database: copy } = JSON.parse(one);
  assert.deepEqual(
    [assessment, reason, copy.refreshed_at, copy.records],
    ['assessed', null, '2025-11-02T03:00:00.000Z', 16],
  );
  const regression = findings.find(({ cve }: { cve: string }) => cve === 'CVE-2024-6387');
  assert.equal(regression.result, 'affected');
  assert.deepEqual(regression.matched, ['cpe:2.3:a:openbsd:openssh:*:*:*:*:*:*:*:* from 8.6 before 9.8']);

  const packed = await printed(assess(settings, { ...openssh, productVersion: '9.6p1 Ubuntu 3ubuntu13.5' }));
  assert.match(packed, /unable to assess: distribution package: faults are mended without a new version/);
  assert.match(packed, /not findings of this service/);
  assert.match(packed, /not endorsed or certified by the NVD/);
});

test("a package is assessed by its distribution's tracker, read from a folder", async () => {
  const releases = { bookworm: { status: 'resolved', fixed_version: '1:9.2p1-2+deb12u3', repositories: {} } };
  const path = makeFeed(
    'trackers',
    'tracker.json',
    JSON.stringify({ openssh: { 'CVE-2024-6387': { releases } } }),
  );
  const imported = await printed(refreshVulnerabilities(settings, { isLoop: false, folder: path }));
  assert.match(imported, /Security tracker of debian: 1 file, 1 statements/);
  assert.match(imported, /Tracker of debian +1 statements, 0 min old/);
  const affected = await printed(assess(settings, { ...openssh, productVersion: '9.2p1 Debian 2+deb12u2' }));
  assert.match(affected, /1 potential vulnerability, as the tracker of debian says of this package/);
  assert.match(affected, /CVE-2024-6387 .*affected package, fixed in 1:9\.2p1-2\+deb12u3/);
  const { assessment, findings, apart_findings, ...fixed } = JSON.parse(
    await printed(assess(settings, { ...openssh, productVersion: '9.2p1 Debian 2+deb12u3', json: true })),
  );
  assert.deepEqual([assessment, findings, fixed.may_be_package], ['assessed', [], false]);
  assert.deepEqual(fixed.package, { distribution: 'debian', version: '9.2p1-2+deb12u3' });
  const race = apart_findings.find(({ cve }: { cve: string }) => cve === 'CVE-2024-6387');
  assert.deepEqual([race.why, race.fixed_in_package], ['fixed_in_package', '1:9.2p1-2+deb12u3']);
});

test('a file of nmap is assessed by address, and its neighbours judge one another', async () => {
  const port = (number: number, service: string) =>
    `<port protocol="tcp" portid="${number}"><state state="open"/>${service}</port>`;
  const host = (address: string, ports: string) =>
    `<host><address addr="${address}" addrtype="ipv4"/><ports>${ports}</ports></host>`;
  const nginx =
    '<service name="http" product="nginx" version="1.24.0" method="probed" conf="10"><cpe>cpe:/a:igor_sysoev:nginx:1.24.0</cpe></service>';
  const ssh =
    '<service name="ssh" product="OpenSSH" version="9.6p1 Ubuntu 3" method="probed" conf="10"><cpe>cpe:/a:openbsd:openssh:9.6p1</cpe></service>';
  const xml = `<?xml version="1.0"?><nmaprun>${host('203.0.113.1', port(80, nginx))}${host('203.0.113.2', `${port(22, ssh)}${port(80, nginx)}<port protocol="tcp" portid="81"><state state="closed"/></port>${port(0, nginx)}${port(65_536, nginx)}`)}</nmaprun>`;
  const file = join(folder, 'scan.xml');
  writeFileSync(file, xml);
  const shown = JSON.parse(await printed(assess(settings, { nmap: file, json: true }))).map(
    (one: { service: { address: string; port: number }; reason: string | null }) => [
      one.service.address,
      one.service.port,
      one.reason,
    ],
  );
  assert.deepEqual(shown, [
    ['203.0.113.1', 80, null],
    ['203.0.113.2', 22, 'distribution_package'],
    ['203.0.113.2', 80, 'likely_packaged'],
  ]);
});

test('what can not be read is refused with what to do, and nothing is lost', async () => {
  const stored = () => serving.vulnerabilities.listProducts();
  const before = await stored();
  const bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><nmaprun><host>&b;</host></nmaprun>';
  writeFileSync(join(folder, 'bomb.xml'), bomb);
  writeFileSync(join(folder, 'other.xml'), '<html></html>');
  const assessed: [AssessOptions, RegExp][] = [
    [{}, /Give one of --cpe/],
    [{ cpe: 'openssh' }, /--cpe takes a name such as/],
    [{ cpe: 'cpe:/a:x:y:1', product: 'x' }, /Give one of/],
    [{ nmap: join(folder, 'none.xml') }, /can't be read as XML of nmap/],
    [{ nmap: join(folder, 'bomb.xml') }, /can't be read as XML of nmap/],
    [{ nmap: join(folder, 'other.xml') }, /none of nmap/],
    [{ address: 'x' }, /IPv4 or IPv6/],
    [{ address: '203.0.113.9' }, /No scan of the last seven days/],
  ];
  for (const [options, message] of assessed) await assert.rejects(assess(settings, options), { message });
  const imported: [string, RegExp][] = [
    [join(folder, 'nowhere'), /can't be read/],
    [makeFeed('bad', 'a.json', '{'), /can't be read/],
    [makeFeed('odd', 'a.json', '{}'), /no feed file/],
    [makeFeed('cut', 'a.json.gz', gzipSync('{}').subarray(0, 9)), /can't be read/],
  ];
  for (const [path, message] of imported)
    await assert.rejects(refreshVulnerabilities(settings, { isLoop: false, folder: path }), { message });
  const both = refreshVulnerabilities(settings, { isLoop: true, folder });
  await assert.rejects(both, { message: /not both/ });
  assert.deepEqual(await stored(), before);
});

test('NET-2.6.3: a refused refresh says so, keeps the copy and shows no key', async () => {
  const beside = await printed(refreshVulnerabilities(settings, { isLoop: false, folder: null }));
  assert.match(beside, /16 records.*this one did nothing/s);
  await serving.database.pool.query("delete from leases where name = 'refresh_vulnerabilities'");
  // The copy of the files is older than a day.
  await nvd.plan({ kind: 'status', status: 403 });
  const { out, err, code } = await monitor(['refresh_vulnerabilities'], { SVC_NVD_API_KEY: key });
  assert.equal(code, 1);
  assert.equal(`${out}${err}`.match(/refuses requests/g)?.length, 1, 'the product that failed says so');
  assert.match(out, /16 records, \d+ (h|days) old/);
  assert.ok(!`${out}${err}`.includes(key));
  const insecure = { ...settings, SVC_NVD_API_KEY: key, SVC_NVD_URL: 'http://nvd.example.com/cves' };
  assert.throws(() => compose(readConfig(insecure)), /^((?!1111).)*not encrypted((?!1111).)*$/s);
});
