import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Assessment, assessServices } from './assess-service.ts';
import type { ServiceEvidence } from './identify-service.ts';
import type { Advisory, Condition, Criterion } from './matcher/advisory.ts';
import { parseCpe, parseCpeUri } from './matcher/cpe.ts';
import { compareToBound, compareVersions, parseStated, parseVersion } from './matcher/version.ts';
import { readRecord } from './nvd/read-record.ts';
import { products } from './products.ts';
import { type Answers, answers, realAnswers } from './testing/boundary-answers.ts';
import { records } from './testing/records/index.ts';

const read = (record: unknown) => readRecord(record);
const advisories = records.map(read).filter((one): one is Advisory => one !== null && one !== 'rejected');

function evidenceOf(
  productKey: string,
  version: string | null,
  change: Partial<ServiceEvidence> = {},
): ServiceEvidence {
  const [vendor, name] = products.find(({ key }) => key === productKey)!.scanNames[0]!;
  const cpe = [`cpe:/a:${vendor}:${name}`];
  return { product: null, version, extraInfo: null, method: 'probed', confidence: 10, cpe, ...change };
}
const knowledge = { advisories, fixes: [] };
const assess = (evidence: ServiceEvidence, known: readonly Advisory[] = advisories): Assessment =>
  assessServices([evidence], () => ({ advisories: known, fixes: [] }))[0]!;

test('NET-2.6.1: each record says of the versions around its boundaries what was worked out by hand', () => {
  const all = [...answers, ...realAnswers];
  const checked = checkAnswers(all, advisories);
  assert.ok(checked >= 600, `${checked} answers`);
  const answered = new Set(all.map(({ cve }) => cve));
  const open = advisories.map(({ cve }) => cve).filter((cve) => !answered.has(cve));
  assert.deepEqual(
    open,
    ['CVE-2024-46981'].filter((cve) => open.includes(cve)),
  );
  assert.ok(advisories.length >= 60, `${advisories.length} records`);
});

/** Compares the results of these records with the expected ones; returns how many there were. */
function checkAnswers(expected: readonly Answers[], known: readonly Advisory[]): number {
  let checked = 0;
  for (const { cve, product, ...results } of expected) {
    const advisory = known.find((one) => one.cve === cve);
    assert.ok(advisory, cve);
    for (const [result, versions] of Object.entries(results)) {
      for (const version of versions) {
        const evidence = evidenceOf(product, version, { method: 'stated' });
        const { reason, findings, apartFindings } = assess(evidence, [advisory]);
        assert.equal(reason, null, `${product} ${version}`);
        const found = findings[0]?.result ?? apartFindings[0]?.why ?? 'safe';
        assert.equal(found, result, `${cve} of ${product} ${version}`);
        checked += 1;
      }
    }
  }
  return checked;
}

const knownNames = products.flatMap(({ names }) => names.map((name) => `:${name.join(':')}:`));

/** Criteria of known products, as text. */
function criteriaOf(part: Condition | Criterion): string[] {
  if ('parts' in part) return part.parts.flatMap(criteriaOf);
  return knownNames.some((name) => part.cpe.includes(name)) ? [JSON.stringify(part)] : [];
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const corpus = join(resolve(root, process.env.SVC_CORPUS_DIR ?? '../shared/corpus'), 'nvd');
const needsCorpus = existsSync(corpus) ? {} : { skip: `no records in ${corpus}: nothing was compared` };

test(
  'NET-2.6.1: real records say of the versions around their boundaries what their text says',
  needsCorpus,
  () => {
    const files = readdirSync(corpus).filter((name) => name.endsWith('.json'));
    const real = files.map((name) => {
      const advisory = read({ cve: JSON.parse(readFileSync(join(corpus, name), 'utf8')) });
      assert.ok(advisory && advisory !== 'rejected', name);
      return advisory;
    });
    assert.ok(checkAnswers(realAnswers, real) >= 120);
    assert.deepEqual(
      real.map(({ cve }) => cve).filter((cve) => realAnswers.every((one) => one.cve !== cve)),
      [],
    );
    // Those of the demo have the same criteria of known products.
    for (const { cve, configurations } of real) {
      const own = advisories.find((one) => one.cve === cve)!;
      assert.deepEqual(
        own.configurations.flatMap(criteriaOf).sort(),
        configurations.flatMap(criteriaOf).sort(),
        cve,
      );
    }
  },
);

test('NET-2.6.1: of a version that can not be read its numbers decide; another product line is another product', () => {
  const resultOf = (cpe: string, key: string, version: string, range: Partial<Criterion> = {}) => {
    const [vendor, name] = products.find((one) => one.key === key)!.names[0]!;
    const parts = [{ cpe: `cpe:2.3:a:${vendor}:${name}:${cpe}`, isVulnerable: true, ...range }];
    const configurations = [{ operator: 'OR' as const, isNegated: false, parts }];
    return assess(evidenceOf(key, version), [{ ...advisories[0]!, configurations }]).findings[0]?.result;
  };
  const any = ':*:*:*:*:*:*:*';
  for (const version of ['5.0.50', '5.0.52', '8.0.36'])
    assert.equal(resultOf(`5.0.51a${any}`, 'mysql', version), undefined, version);
  assert.equal(resultOf(`5.0.51a${any}`, 'mysql', '5.0.51'), 'possible');
  assert.equal(resultOf(`7.2.x${any}`, 'redis', '7.2.4'), 'possible');
  assert.equal(resultOf(`7.2.x${any}`, 'redis', '7.4.0'), undefined);
  assert.equal(resultOf(`r1${any}`, 'nginx', '1.18.0'), undefined);
  assert.equal(resultOf(`1.18.0:*:*:*:open_source_subscription:*:*:*`, 'nginx', '1.18.0'), undefined);
  const to = (endExcluding: string) => ({ endExcluding });
  assert.equal(resultOf(`*${any}`, 'mysql', '5.0.50', to('5.0.51a')), 'affected');
  assert.equal(resultOf(`*${any}`, 'mysql', '5.0.51', to('5.0.51a')), 'possible');
  assert.equal(resultOf(`*${any}`, 'mysql', '5.1.1', to('5.0.51a')), undefined);
  assert.equal(
    resultOf(`*${any}`, 'nginx', '1.18.0', { startIncluding: 'r22', endExcluding: 'r27' }),
    undefined,
  );
  // A number that is too long is no number.
  assert.equal(resultOf(`9999999999${any}`, 'redis', '7.2.4'), 'possible');
});

test('NET-2.6.2: what depends on platform, edition or an unknown version is marked as incomplete', () => {
  const incomplete = (product: string, version: string, cve: string) => {
    const evidence = evidenceOf(product, version, { method: 'stated' });
    const finding = assess(evidence).findings.find((one) => one.cve === cve)!;
    return [finding.result, ...finding.incomplete];
  };
  assert.deepEqual(incomplete('httpd', '2.4.59', 'CVE-2024-38472'), ['possible', 'platform']);
  assert.deepEqual(incomplete('nginx', '1.18.0', 'CVE-2022-41741'), ['possible', 'edition']);
  assert.deepEqual(incomplete('openssh', '9.3', 'CVE-2023-38408'), ['possible', 'version']);
  assert.deepEqual(incomplete('openssh', '9.3p1', 'CVE-2023-38408'), ['affected']);
});

test('NET-2.6.2: a record that names every version is shown apart, and one of no version is of none', () => {
  const conditionOf = (cpe: string, isNegated = false) => ({
    ...{ operator: 'OR' as const, isNegated },
    parts: [{ cpe: `cpe:2.3:a:openbsd:openssh:${cpe}:*:*:*`, isVulnerable: true }],
  });
  const found = (...configurations: Advisory['configurations'][number][]) => {
    const said = assess(evidenceOf('openssh', '9.6'), [{ ...advisories[0]!, configurations }]);
    return [said.findings[0]?.result, said.apartFindings[0]?.why, said.apartFindings[0]?.finding.incomplete];
  };
  const [every, none] = [conditionOf('*:*:*:*:*'), conditionOf('-:*:*:*:*')];
  assert.deepEqual(found(every), [undefined, 'any_version', ['all_versions']]);
  assert.deepEqual(found(conditionOf('*:*:*:*:pro')), [
    undefined,
    'any_version',
    ['all_versions', 'edition'],
  ]);
  assert.deepEqual(found(none), [undefined, undefined, undefined]);
  assert.deepEqual(found(none, every), [undefined, 'any_version', ['all_versions']]);
  // What a record says of this version counts before what it says of all.
  assert.deepEqual(found(every, conditionOf('9.6:p1:*:*:*')), ['possible', undefined, undefined]);
  assert.deepEqual(found(every, conditionOf('9.6:*:*:*:*')), ['affected', undefined, undefined]);
  assert.deepEqual(found(conditionOf('*:*:*:*:*', true)), [undefined, undefined, undefined]);
});

test('NET-2.6.2: what can not be known stays unable to assess, with the reason', () => {
  const reasons: (readonly [Partial<ServiceEvidence> & { key?: string }, Assessment['reason']])[] = [
    [{ version: '9.6p1 Ubuntu 3ubuntu13.5' }, 'distribution_package'],
    [{ version: '9.2p1 Debian 2+deb12u3' }, 'distribution_package'],
    [{ version: '9.6', extraInfo: 'FreeBSD 20240806; protocol 2.0' }, 'distribution_package'],
    [{ version: '9.6', extraInfo: 'protocol 2.0' }, null],
    [{ version: '9.2p1', extraInfo: 'protocol 2.0' }, 'distribution_package'],
    [{ version: '9.2p1', method: 'stated' }, null],
    [
      { version: '8.7', cpe: ['cpe:/a:openbsd:openssh:8.7', 'cpe:/o:redhat:enterprise_linux'] },
      'distribution_package',
    ],
    [{ version: 'for_Windows_8.1' }, 'ambiguous_version'],
    [{ version: '9.6', method: 'table' }, 'not_probed'],
    [{ version: '9.6', confidence: 8 }, 'low_confidence'],
    [{ version: null }, 'no_version'],
    [{ version: ' ' }, 'no_version'],
    [{ version: '9.6', cpe: ['cpe:/a:openbsd:openssh:9.7'] }, 'ambiguous_version'],
    [{ version: '9.6', cpe: ['cpe:/a:openbsd:openssh:9.6', 'cpe:/o:linux:linux_kernel'] }, null],
    [{ version: '9.6p1', cpe: ['cpe:/a:dropbear:dropbear'] }, 'unknown_product'],
    [{ version: '9.6p1', cpe: ['cpe:/a:openbsd:openssh', 'cpe:/a:apache:http_server'] }, 'ambiguous_product'],
    [{ version: '9.6', cpe: [], product: 'OpenSSH' }, null],
    [{ version: '9.6p1', cpe: [], product: 'OpenSSH server' }, 'unknown_product'],
    [{ version: '9.6p1', cpe: [], product: null }, 'unknown_product'],
    [{ key: 'proftpd', version: '0.9.9', product: 'ProFTPD mod_sftp' }, 'ambiguous_version'],
    [{ key: 'proftpd', version: null, product: 'ProFTPD mod_sftp' }, 'ambiguous_version'],
    [{ key: 'proftpd', version: '1.3.5d', product: 'ProFTPD' }, null],
    [{ key: 'proftpd', version: '1.3.5e', product: 'ProFTPD' }, 'distribution_package'],
    [{ key: 'mysql', version: '1.0', product: 'MySQL instance manager' }, 'ambiguous_version'],
    [
      { key: 'httpd', version: '1.3.29', product: 'Net Integration Modified Apache httpd' },
      'ambiguous_version',
    ],
    [{ key: 'mariadb', version: '5.5.22-MariaDB', product: 'MySQL' }, null],
    [{ key: 'mariadb', version: '5.5.60-MariaDB', product: 'MySQL' }, 'distribution_package'],
    [{ key: 'memcached', version: '1.6.21', product: 'Memcached' }, null],
    [{ key: 'vsftpd', version: '2.0.8 or later' }, 'ambiguous_version'],
    [{ key: 'postgresql', version: '9.6.0 or later' }, 'ambiguous_version'],
    [{ key: 'mariadb', version: '10.3.23 or earlier' }, 'ambiguous_version'],
    [{ key: 'httpd', version: '2.4' }, 'incomplete_version'],
    [{ key: 'httpd', version: '2.4.57', extraInfo: '(Debian)' }, 'distribution_package'],
    [{ key: 'httpd', version: '2.4.57', extraInfo: '(Unix) OpenSSL/3.0.2' }, null],
    [{ key: 'httpd', version: '2.4.57', extraInfo: '(Win64) PHP/8.2.0' }, null],
    ...[
      '(Amazon)',
      '(CloudLinux) OpenSSL/1.1.1k',
      '(openEuler)',
      '(AlmaLinux)',
      '()',
      '(A distribution of 2031)',
    ].map((extraInfo) => [{ key: 'httpd', version: '2.4.57', extraInfo }, 'distribution_package'] as const),
    [{ key: 'nginx', version: '1.20.1', extraInfo: 'CloudLinux' }, 'distribution_package'],
    [{ key: 'mariadb', version: '10.6.16-MariaDB-cll-lve' }, 'distribution_package'],
    [{ key: 'mariadb', version: '11.4.2-MariaDB-ubu2404' }, 'distribution_package'],
    ...['10.1.48-MariaDB-1~jessie', '10.0.38-MariaDB-1~xenial', '10.6.16-MariaDB-1~bpo11+1'].map(
      (version) => [{ key: 'mariadb', version }, 'distribution_package'] as const,
    ),
    [{ key: 'mysql', version: '5.1.73-1+squeeze1' }, 'distribution_package'],
    [{ key: 'mysql', version: '5.0.51a-24+lenny5' }, 'distribution_package'],
    [{ key: 'mysql', version: '8.0.36-1.el9' }, 'distribution_package'],
    [{ key: 'mysql', version: '8.0.36-0ubuntu0.22.04.1' }, 'distribution_package'],
    [{ key: 'mysql', version: '5.5.5-10.11.6-MariaDB-0+deb12u1' }, 'distribution_package'],
    [{ key: 'mysql', version: '5.5.5-10.11.6-MariaDB-1:10.11.6+maria~ubu2204' }, 'distribution_package'],
    [{ key: 'redis', version: '7.2.x' }, 'ambiguous_version'],
    [{ key: 'nginx', version: '1.18.0 - 1.20.1' }, 'ambiguous_version'],
    [{ key: 'nginx', version: '9999999999999999999.1.2' }, 'ambiguous_version'],
  ];
  for (const [{ key = 'openssh', ...change }, reason] of reasons) {
    const result = assess(evidenceOf(key, null, change));
    assert.equal(result.reason, reason, JSON.stringify(change));
    assert.equal(result.assessment, reason === null ? 'assessed' : 'unable');
    if (reason !== null) assert.deepEqual(result.findings, [], 'no active finding');
  }
  assert.equal(
    assessServices([evidenceOf('redis', '7.2.4')], () => ({ advisories: null, fixes: [] }))[0]!.reason,
    'no_database',
  );
});

test('a package shows what its original would have, apart; its neighbours without a mark are likely packages', () => {
  const [ssh, nginx] = assessServices(
    [evidenceOf('openssh', '9.6p1 Ubuntu 3ubuntu13.5'), evidenceOf('nginx', '1.24.0')],
    () => knowledge,
  );
  assert.deepEqual([ssh!.findings, nginx!.findings], [[], []]);
  assert.ok(ssh!.upstreamFindings.some(({ cve }) => cve === 'CVE-2024-6387'));
  assert.ok(!ssh!.upstreamFindings.some(({ cve }) => cve === 'CVE-2023-48795'), 'fixed in 9.6');
  assert.equal(nginx!.reason, 'likely_packaged');
  assert.ok(nginx!.upstreamFindings.some(({ cve }) => cve === 'CVE-2023-44487'));
  // A service of no known product is a package too, and so says its operating system.
  for (const change of [{ extraInfo: '(Debian)' }, { cpe: ['cpe:/o:canonical:ubuntu_linux'] }]) {
    const services = [
      evidenceOf('nginx', '1.24.0'),
      evidenceOf('vsftpd', null, { product: 'Dovecot', ...change }),
    ];
    assert.equal(
      assessServices(services, () => knowledge)[0]!.reason,
      'likely_packaged',
      JSON.stringify(change),
    );
  }
  const [alone] = assessServices([evidenceOf('nginx', '1.24.0')], () => knowledge);
  assert.ok(alone!.findings.some(({ cve }) => cve === 'CVE-2023-44487'));
});

test('findings are sorted: known exploited first, then by score, of the newest CVSS and the database itself', () => {
  const { findings } = assess(evidenceOf('httpd', '2.4.49'));
  const shown = findings.map(({ cve, severity, isKnownExploited }) => [
    cve,
    severity?.score,
    isKnownExploited,
  ]);
  assert.deepEqual(shown.slice(0, 4), [
    ['CVE-2021-42013', 9.8, true],
    ['CVE-2024-38475', 9.1, true],
    ['CVE-2021-41773', 7.5, true],
    ['CVE-2021-44790', 9.8, false],
  ]);
  const mongo = assess(evidenceOf('mongodb', '8.0.1')).findings[0]!;
  assert.deepEqual(mongo.severity, { version: '4.0', score: 8.7, rating: 'high' });
  const old = assess(evidenceOf('memcached', '1.4.5')).findings.find(({ cve }) => cve === 'CVE-2011-4971')!;
  assert.deepEqual(old.severity, { version: '2.0', score: 5, rating: 'medium' });
  const disputed = assess(evidenceOf('postgresql', '11.2')).findings.find(
    ({ cve }) => cve === 'CVE-2019-9193',
  )!;
  assert.equal(disputed.isDisputed, true);
});

test('a record that another product makes true is no finding of the service', () => {
  const { findings } = assess(evidenceOf('openssh', '9.9p2', { method: 'stated' }));
  // Both records are also about operating systems, which are not known here.
  assert.ok(!findings.some(({ cve }) => ['CVE-2024-6387', 'CVE-2023-38408'].includes(cve)));
});

test('CPE 2.3: fields are split at colons that are not escaped, and every escape is a literal', () => {
  const name = parseCpe('cpe:2.3:a:v\\:en\\\\dor:pro\\-d\\+\\*:1\\.2\\?:-:*:EN:*:*:*:*')!;
  assert.deepEqual(name.vendor, { is: 'text', text: 'v:en\\dor' });
  assert.deepEqual(name.product, { is: 'text', text: 'pro-d+*' });
  assert.deepEqual(name.version, { is: 'text', text: '1.2?' });
  assert.deepEqual([name.update, name.edition], [{ is: 'none' }, { is: 'any' }]);
  const escapable = '!"#$%&\'()*+,-./:;<=>?@[\\]^`{|}~';
  for (const char of escapable) {
    const parsed = parseCpe(`cpe:2.3:a:x\\${char}y:p:*:*:*:*:*:*:*:*`);
    assert.deepEqual(parsed?.vendor, { is: 'text', text: `x${char}y` }, char);
  }
  const wild = parseCpe('cpe:2.3:a:v:p:1.2.*:??:*:*:*:*:*:*')!;
  assert.ok(
    wild.version.is === 'pattern' &&
      wild.version.pattern.test('1.2.13') &&
      !wild.version.pattern.test('1.3.1'),
  );
  assert.ok(
    wild.update.is === 'pattern' && wild.update.pattern.test('p1') && !wild.update.pattern.test('p10'),
  );
});

test('CPE: what is no name is refused', () => {
  const tail = ':*:*:*:*:*:*:*';
  for (const text of [
    '',
    'cpe:2.3',
    `cpe:2.3:a:v:p:1${tail}:*`,
    'cpe:2.3:a:v:p:1:*:*',
    `cpe:2.3:x:v:p:1${tail}`,
    `cpe:2.3:a::p:1${tail}`,
    `cpe:2.3:a:v:p:1*2${tail}`,
    `cpe:2.3:a:v:p:1**${tail}`,
    `cpe:2.3:a:v v:p:1${tail}`,
    `cpe:2.3:a:v\u0000:p:1${tail}`,
    `cpe:2.3:a:v:p:1:*:*:*:*:*:*:\\`,
    `cpe:2.4:a:v:p:1${tail}`,
    `cpe:2.3:a:${'v'.repeat(2_000)}:p:1${tail}`,
  ])
    assert.equal(parseCpe(text), null, text);
  for (const text of [
    '',
    'cpe:a:v:p',
    'cpe:/x:v:p',
    'cpe:/a:v:p%:1',
    'cpe:/a:v:p:1:2:3:4:5',
    'cpe:/a:v:p:1::~a~b',
  ])
    assert.equal(parseCpeUri(text), null, text);
});

test('CPE 2.2: missing parts, percent escapes and packed editions', () => {
  const name = parseCpeUri('cpe:/a:v%2b:p:1%02:p1:~~pro~linux~x64~')!;
  assert.deepEqual(name.vendor, { is: 'text', text: 'v+' });
  assert.ok(name.version.is === 'pattern' && name.version.pattern.test('1.9'));
  assert.deepEqual(name.softwareEdition, { is: 'text', text: 'pro' });
  assert.deepEqual(name.targetSoftware, { is: 'text', text: 'linux' });
  assert.deepEqual([name.edition, name.other, name.language], [{ is: 'any' }, { is: 'any' }, { is: 'any' }]);
});

test('versions of each product are in their order', () => {
  const ordered = {
    dotted: '0.9 1.0-alpha1 1.0-beta2 1.0rc1 1.0-rc2 1.0 1.0.1 1.2 1.9.9 1.10 1.10.0.1 2',
    portable: '3.9.1p1 4.3 4.3p1 4.3p2 9.6 9.6p1 9.10',
    lettered: '1.3.4e 1.3.5rc1 1.3.5rc10 1.3.5 1.3.5a 1.3.5b 1.3.5e 1.3.6rc1',
    tagged: '5.5.62-log 5.7.33 5.7.34-debug-log 8.0.4-rc-log 8.0.11 10.3.2-MariaDB',
  } as const;
  for (const [scheme, texts] of Object.entries(ordered)) {
    const versions = texts.split(' ').map((text) => parseVersion(scheme as keyof typeof ordered, text)!);
    versions.forEach((version, i) => {
      versions.forEach((other, j) => {
        assert.equal(Math.sign(compareVersions(version, other)), Math.sign(i - j), `${scheme} ${i} ${j}`);
      });
    });
  }
  const ssh = (text: string) => parseVersion('portable', text)!;
  const bound = (own: string, text: string) =>
    compareToBound('portable', ssh(own), parseStated('portable', text));
  assert.equal(bound('9.6p1', '9.6'), 0);
  assert.equal(bound('9.6', '9.6p1'), null);
  assert.ok(bound('9.6p2', '9.6p1')! > 0);
  assert.equal(compareVersions(parseVersion('dotted', '1.2')!, parseVersion('dotted', '1.2.0.0')!), 0);
  for (const text of [
    '',
    'x',
    '1.',
    '.1',
    '1..2',
    '1.2 3',
    '1.2.3.4.5.6.7.8.9',
    '1.2~~',
    '1.2_constructor',
    '-1',
  ])
    assert.equal(parseVersion('dotted', text), null, text);
  assert.equal(parseVersion('portable', '9.6p1', 'p2'), null, 'two updates');
});
