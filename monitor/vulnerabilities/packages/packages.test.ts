/** Packages of distributions, and what the trackers of their distributions say of them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { type AssessWorld, addressOf, nginx, openssh, startAssessWorld } from '../testing/assess-world.ts';
import {
  compareDebianPart,
  compareRevisions,
  compareRpmPart,
  parsePackageVersion,
  readRevision,
} from './compare-revisions.ts';
import { judgePackage } from './judge-package.ts';
import { readTracker } from './read-trackers.ts';

/** What Debian publishes, of one release. */
const debian = (fixes: Record<string, string | null>, current = '1:9.2p1-2+deb12u7') => ({
  openssh: Object.fromEntries(
    Object.entries(fixes).map(([cve, fixed]) => [
      cve,
      {
        description: 'not read',
        releases: {
          bookworm: {
            ...{ status: fixed === null ? 'open' : 'resolved', urgency: 'not yet assigned' },
            ...{ repositories: { bookworm: current, 'bookworm-security': current } },
            ...(fixed === null ? {} : { fixed_version: fixed }),
          },
          sid: { status: 'resolved', fixed_version: '1:10.2p1-1', repositories: { sid: '1:10.2p1-2' } },
        },
      },
    ]),
  ),
  zlib: { 'TEMP-0000000-A': { releases: {} } },
});

const osv = (cve: string, fixed: string | null) => ({
  ...{ schema_version: '1.7.0', id: `UBUNTU-${cve}`, upstream: [cve] },
  affected: [
    {
      package: { ecosystem: 'Ubuntu:24.04:LTS', name: 'openssh' },
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, ...(fixed ? [{ fixed }] : [])] }],
      versions: ['1:9.3p1-1ubuntu3', '1:9.6p1-3ubuntu13'],
    },
    { package: { ecosystem: 'Ubuntu:Pro:16.04:LTS', name: 'openssh' }, versions: ['1:9.6p1-3ubuntu13'] },
  ],
});

const vex = (cve: string, status: object) => ({
  document: { category: 'csaf_vex', publisher: { namespace: 'https://www.redhat.com' } },
  vulnerabilities: [{ cve, product_status: status }],
});

/** `fixed 1:9.2p1-2`, `affected none`, or null. */
function verdictOf(files: object[], shown: string, cve: string): string | null | undefined {
  const fixes = files.flatMap((file) => readTracker(structuredClone(file))!.fixes);
  const verdict = judgePackage(readRevision(shown)!, fixes)?.(cve);
  return verdict && `${verdict.state} ${verdict.fixedIn ?? 'none'}`;
}

test('versions of rpm packages have the order of its manual', () => {
  const wrong: string[] = [];
  const list = '1.0~rc1 1.0 1.0^git1 1.0.a 1.0.1 1.0.1a1 1.0.2 1.0.10 1.10 2 2.0.0'.split(' ');
  list.forEach((a, i) => {
    list.forEach((b, j) => {
      if (Math.sign(compareRpmPart(a, b)) !== Math.sign(i - j)) wrong.push(`${a} ${b}`);
    });
  });
  assert.deepEqual(wrong, []);
  for (const [a, b] of [
    ['1.0', '1_0'],
    ['2.0.1', '2.0.01'],
    ['5.5p1', '5.5..p1'],
  ] as const)
    assert.equal(compareRpmPart(a, b), 0, `${a} ${b}`);
});

const needsDpkg = existsSync('/usr/bin/dpkg') ? {} : { skip: 'dpkg is not installed' };

test('versions of Debian packages have the order of dpkg', needsDpkg, () => {
  const random = seededRandom(5);
  const pieces = '0 1 2 9 10 007 . + ~ a b p1 rc ubuntu deb12u Z - -1'.split(' ');
  const some = () =>
    Array.from({ length: 1 + random() * 6 }, () => pieces[Math.floor(random() * pieces.length)]!);
  // dpkg takes a dash for the begin of the revision, which must not be empty.
  const text = (parts: readonly string[]) => `1${parts.join('')}`.replace(/-+$/, '');
  const pairs = Array.from({ length: 120 }, (_, i) => {
    const parts = some();
    const changed = parts.toSpliced(
      Math.floor(random() * parts.length),
      Math.floor(random() * 2),
      some()[0]!,
    );
    return [text(parts), text(i % 2 === 0 ? changed : some())] as const;
  });
  const script = `while read -r a b; do
    if dpkg --compare-versions "$a" lt "$b"; then echo -1
    elif dpkg --compare-versions "$a" eq "$b"; then echo 0; else echo 1; fi
  done`;
  const input = pairs.map((pair) => `${pair.join(' ')}\n`).join('');
  const said = execFileSync('sh', ['-c', script], {
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  assert.deepEqual(
    pairs.map(([a, b]) =>
      Math.sign(compareRevisions(compareDebianPart, parsePackageVersion(a), parsePackageVersion(b))),
    ),
    said.trim().split('\n').map(Number),
  );
});

test('a banner names the package that it shows whole', () => {
  const shown = (text: string) => {
    const read = readRevision(text);
    return read && `${read.distribution} ${read.version}`;
  };
  assert.deepEqual(
    [
      '9.6p1 Ubuntu 3ubuntu13.5',
      '9.6p1 Ubuntu-3ubuntu13.5',
      '5.3p1 Debian 3ubuntu7',
      '10.2p1 Debian-1',
      '9.2p1 Debian 2+deb12u3',
      '8.0.36-0ubuntu0.22.04.1',
      '5.5.5-10.11.6-MariaDB-0+deb12u1-log',
      '8.7p1-38.el9_4.1',
      '8.0.36-1.module+el8.9.0+21207+6c20cb3d',
    ].map(shown),
    [
      'ubuntu 9.6p1-3ubuntu13.5',
      'ubuntu 9.6p1-3ubuntu13.5',
      'ubuntu 5.3p1-3ubuntu7',
      'debian 10.2p1-1',
      'debian 9.2p1-2+deb12u3',
      'ubuntu 8.0.36-0ubuntu0.22.04.1',
      'debian 10.11.6-0+deb12u1',
      'redhat 8.7p1-38.el9_4.1',
      'redhat 8.0.36-1.module+el8.9.0+21207+6c20cb3d',
    ],
  );
  for (const text of [
    ...['9.2p1', '9.6p1 Ubuntu', '10.11.6-MariaDB-1:10.11.6+maria~ubu2204', '8.0.36-28', '5.7.40-log'],
    ...['9.2p1 Raspbian 10+deb10u2', '', '9.2p1 Debian 2 and more'],
  ])
    assert.equal(readRevision(text), null, text);
});

test("Debian's tracker: fixed from its version on, affected before, and nothing where it is not certain", () => {
  const file = debian({ 'CVE-2024-6387': '1:9.2p1-2+deb12u3', 'CVE-2025-0001': null, 'CVE-2025-0002': '0' });
  const of = (shown: string, cve = 'CVE-2024-6387') => verdictOf([file], shown, cve);
  assert.equal(of('9.2p1 Debian 2+deb12u2'), 'affected 1:9.2p1-2+deb12u3');
  assert.equal(of('9.2p1 Debian 2'), 'affected 1:9.2p1-2+deb12u3');
  assert.equal(of('9.2p1 Debian 2+deb12u3'), 'fixed 1:9.2p1-2+deb12u3');
  assert.equal(of('9.2p1 Debian 2+deb12u10'), 'fixed 1:9.2p1-2+deb12u3');
  assert.equal(of('9.2p1 Debian 2+deb12u7', 'CVE-2025-0001'), 'affected none');
  assert.equal(of('9.2p1 Debian 2+deb12u10', 'CVE-2025-0001'), null, 'newer than the tracker');
  assert.equal(of('9.2p1 Debian 2+deb12u1', 'CVE-2025-0002'), 'fixed none');
  assert.equal(of('9.2p1 Debian 2+deb12u1', 'CVE-2025-0003'), null);
  // The revision names no release: the one that has this version of the original.
  assert.equal(of('10.2p1 Debian 1'), 'fixed 1:10.2p1-1');
  assert.equal(of('8.4p1 Debian 5+deb11u3'), undefined, 'a release that the file does not have');
  assert.equal(of('7.9p1 Debian 10'), undefined, 'a version that no release has');
  assert.equal(of('9.6p1 Ubuntu 3ubuntu13.5'), undefined, 'another distribution');
  const unimportant = structuredClone(file);
  unimportant.openssh['CVE-2025-0001']!.releases.bookworm.urgency = 'unimportant';
  assert.equal(verdictOf([unimportant], '9.2p1 Debian 2+deb12u1', 'CVE-2025-0001'), null);
});

test("Ubuntu's OSV and Red Hat's VEX: by release, and by the minor release's own fix", () => {
  const cve = 'CVE-2024-6387';
  const ubuntu = [osv(cve, '1:9.6p1-3ubuntu13.3'), osv('CVE-2025-0001', null)];
  assert.equal(verdictOf(ubuntu, '9.6p1 Ubuntu 3ubuntu13', cve), 'affected 1:9.6p1-3ubuntu13.3');
  assert.equal(verdictOf(ubuntu, '9.6p1 Ubuntu 3ubuntu13.5', cve), 'fixed 1:9.6p1-3ubuntu13.3');
  assert.equal(verdictOf(ubuntu, '9.6p1 Ubuntu 3ubuntu13', 'CVE-2025-0001'), 'affected none');
  assert.equal(verdictOf(ubuntu, '9.6p1 Ubuntu 3ubuntu13.5', 'CVE-2025-0001'), null, 'newer than the file');
  assert.equal(verdictOf(ubuntu, '8.2p1 Ubuntu 4ubuntu0.11', cve), undefined);
  assert.equal(readTracker({ ...osv(cve, null), id: 'PYSEC-1', affected: [] }), null);

  const redhat = [
    vex(cve, {
      fixed: [
        'BaseOS-9.4.0.Z.MAIN.EUS:openssh-0:8.7p1-38.el9_4.1.src',
        'BaseOS-9.4.0.Z.MAIN.EUS:openssh-0:8.7p1-38.el9_4.1.x86_64',
        'BaseOS-9.2.0.Z.EUS:openssh-0:8.7p1-30.el9_2.4.src',
      ],
      known_not_affected: ['red_hat_enterprise_linux_8:openssh'],
    }),
    vex('CVE-2025-0001', { known_affected: ['red_hat_enterprise_linux_9:openssh', 'other:openssh'] }),
  ];
  assert.equal(verdictOf(redhat, '8.7p1-38.el9', cve), 'affected 8.7p1-38.el9_4.1');
  assert.equal(verdictOf(redhat, '8.7p1-43.el9', cve), 'fixed 8.7p1-38.el9_4.1');
  assert.equal(verdictOf(redhat, '8.7p1-30.el9_2.4', cve), 'fixed 8.7p1-30.el9_2.4');
  assert.equal(verdictOf(redhat, '8.7p1-30.el9_2.3', cve), 'affected 8.7p1-30.el9_2.4');
  assert.equal(verdictOf(redhat, '8.0p1-19.el8_8', cve), 'fixed none');
  assert.equal(verdictOf(redhat, '8.7p1-38.el9', 'CVE-2025-0001'), 'affected none');
  assert.equal(verdictOf(redhat, '7.4p1-23.el7', cve), undefined);
});

let world: AssessWorld;
let folder: string;
before(async () => {
  world = await startAssessWorld(1);
  folder = mkdtempSync(join(tmpdir(), 'svc-trackers-'));
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await world[Symbol.asyncDispose]();
});

test("NET-2.6.2: a package is unable to be assessed until its distribution's tracker knows it; what is fixed in it is shown apart", async () => {
  const address = addressOf(1);
  const read = async () => (await world.vulnerabilities.readServer(7, 1))!;
  const importTracker = async (fixes: Record<string, string | null>) => {
    mkdirSync(join(folder, 'debian'), { recursive: true });
    writeFileSync(join(folder, 'debian', 'tracker.json'), JSON.stringify(debian(fixes)));
    await world.vulnerabilities.importFiles(folder, () => {});
    await world.assess();
  };
  const state = async () => {
    const { server, services } = await read();
    return [
      services.map(({ reason }) => reason),
      services[0]!.reason === null
        ? services[0]!.findings.map(({ finding }) => [finding.cve, finding.package])
        : [],
      services[0]!.apart.filter(({ finding }) => finding.cve === 'CVE-2023-48795').map(({ why }) => why),
      server.critical + server.high + server.medium + server.low + server.unrated,
    ];
  };
  await world.copyRecords();
  await world.scan(address, [openssh('9.2p1 Debian 2+deb12u2'), nginx('1.22.1')], { endedAgo: 100 });
  await world.assess();
  const unable = [['distribution_package', 'likely_packaged'], [], [], 0];
  assert.deepEqual(await state(), unable);
  const race = 'CVE-2024-6387';
  const affected = [[race, { fixedIn: '1:9.2p1-2+deb12u3' }]];
  await importTracker({ [race]: '1:9.2p1-2+deb12u3', 'CVE-2023-48795': '1:9.2p1-2+deb12u2' });
  assert.deepEqual(await state(), [[null, 'likely_packaged'], affected, ['fixed_in_package'], 1]);
  const missing = (await read()).services[0]!.apart.find(({ finding }) => finding.cve === 'CVE-2023-38408');
  assert.equal(missing?.why, 'not_in_tracker');
  assert.equal((await world.rows('select 1 from vulnerability_noted')).length, 1, 'operators are told');
  const viewer = await world.signIn('viewer');
  const { text } = await viewer.get(`/sites/${world.siteId}/vulnerabilities/servers/7/1`);
  for (const shown of [
    'the package is affected, fixed in 1:9.2p1-2+deb12u3',
    'fixed in this package, since 1:9.2p1-2+deb12u2',
    'tracker says nothing certain of this package',
    'by the security tracker of the package',
  ])
    assert.ok(text.includes(shown), shown);
  // Also the next scan of the same package.
  await world.scan(address, [openssh('9.2p1 Debian 2+deb12u2'), nginx('1.22.1')], { endedAgo: 50 });
  await world.assess();
  assert.deepEqual(await state(), [[null, 'likely_packaged'], affected, ['fixed_in_package'], 1]);
  // A file takes the place of the one before; without the release nothing is known any more.
  await importTracker({ [race]: '1:9.2p1-2+deb12u2', 'CVE-2023-48795': '1:9.2p1-2+deb12u2' });
  assert.deepEqual(await state(), [[null, 'likely_packaged'], [], ['fixed_in_package'], 0]);
  const { openssh: cves } = debian({ [race]: null });
  cves[race]!.releases = { sid: cves[race]!.releases.sid } as never;
  writeFileSync(join(folder, 'debian', 'tracker.json'), JSON.stringify({ openssh: cves }));
  await world.vulnerabilities.importFiles(folder, () => {});
  await world.assess();
  assert.deepEqual(await state(), unable);
});

test('a tracker is read from a URL too, and a file of another kind is refused', async (t) => {
  const server = createServer((request, response) => {
    if (request.url !== '/json') return void response.writeHead(302, { location: '/json' }).end();
    response.end(JSON.stringify(debian({ 'CVE-2024-6387': null })));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const said: string[] = [];
  await world.vulnerabilities.importFiles(`${url}/json`, (line) => said.push(line));
  assert.deepEqual(said, ['Security tracker of debian: 1 file, 2 statements of known products.']);
  assert.deepEqual(
    (await world.vulnerabilities.listTrackers()).map(({ distribution, fixes }) => [distribution, fixes]),
    [['debian', 2]],
  );
  const refused = { code: 'vulnerabilities.feed' };
  for (const source of [`${url}/elsewhere`, 'http://tracker.example.com/json'])
    await assert.rejects(
      world.vulnerabilities.importFiles(source, () => {}),
      refused,
    );
  for (const file of [
    {},
    { openssh: { 'CVE-2024-6387': 7 }, x: 7 },
    osv('CVE-2024-6387', null).affected,
    null,
  ]) {
    writeFileSync(join(folder, 'debian', 'tracker.json'), JSON.stringify(file));
    await assert.rejects(
      world.vulnerabilities.importFiles(folder, () => {}),
      refused,
    );
  }
});
