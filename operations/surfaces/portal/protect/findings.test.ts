import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import {
  createFindingMonitor,
  findingOf,
  fingerprintOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import { visit } from '#operations/testing/visit.ts';

let world: World;
let deliver: Awaited<ReturnType<typeof createFindingMonitor>>['deliver'];

before(async () => {
  world = await createWorld();
  ({ deliver } = await createFindingMonitor(world));
});
after(() => world[Symbol.asyncDispose]());

/** A signed-in customer with a server that is two days old. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
  await world.backdate(serverId, '2 days');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const visitor = await visit(world, customer.email, '/client/settings/');
  const protect = `/client/servers/${serverId}/protect`;
  const path = `${protect}/findings`;
  const text = async (tail = '') => textOf(await visitor.page(`${path}${tail}`));
  const json = async () => (await (await visitor.get(`${path}.json`)).json()) as FindingsFile;
  const first = allocations.find(({ address }) => !address.includes(':'))!;
  const ssh = `/${first.address}/tcp-22`;
  const ignore = (cve: string, fields: Record<string, string> = {}) =>
    visitor.post(`${path}${ssh}/${cve}/ignore`, {
      ...{ reason: 'mended by hand', days: '90', fingerprint: fingerprintOf('OpenSSH 9.6p1') },
      ...fields,
    });
  return { ...customer, ...visitor, serverId, protect, path, text, json, first, ssh, ignore, allocations };
}

interface FindingsFile {
  findings: Record<string, unknown>[];
  unable: Record<string, unknown>[];
}

const textOf = (page: string) =>
  page
    .replace(/<[^>]+>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll(/\s+/g, ' ');

const cves = ['CVE-2024-6387', 'CVE-2023-38408', 'CVE-2021-41617', 'CVE-2020-0001'] as const;
const several = () =>
  projectedService({
    findings: [
      findingOf(cves[0], { severity: 'high', score: 8.1 }),
      findingOf(cves[1], { severity: 'critical', score: 9.8, known_exploited: true }),
      findingOf(cves[2], { severity: 'medium', score: 5, incomplete: 'platform', disputed: true }),
      findingOf(cves[3], { severity: null, score: null, cvss_version: null, cvss_vector: null }),
    ],
  });
const packaged = () =>
  projectedService({
    ...{ port: 80, product: 'Apache httpd', version: '2.4.57 (Debian)', assessment: 'unable' },
    ...{ reason: 'distribution_package', findings: [findingOf('CVE-2024-38476')] },
  });

test('NET-2.6.1: the pages say severity, evidence and ages, active and ignored apart, and that nothing is confirmed', async () => {
  const reader = await createReader('Shown');
  assert.match(await reader.text(), /No scan yet\. Services are assessed after the first port scan\./);
  await deliver(projectionOf(reader.first, { services: [several(), packaged()] }));
  for (const page of [await reader.text(), textOf(await reader.page(reader.protect))]) {
    assert.match(
      page,
      /4 active, 1 known to be exploited, 1 critical, 1 high\. 1 service could not be assessed\./,
    );
    assert.match(page, /1 critical .{0,3}1 high .{0,3}1 medium .{0,3}0 low .{0,3}1 unrated/, 'the bar');
    assert.match(page, /OpenSSH 9\.6p1 tcp\/22 4 .{0,3}critical 9\.8 .*known exploited/, 'by service');
    assert.match(page, /not confirmed that the server can be attacked/);
    assert.match(page, /Database fetched .{0,30}3 h ago/);
    assert.match(page, /uses the NVD API but is not endorsed or certified by the NVD/);
    assert.doesNotMatch(page, /is vulnerable|CVE-2024-38476/);
  }
  assert.match(
    await reader.text(),
    /CVE-2023-38408 .*critical 9\.8 .*known exploited .*Service: tcp\/22 OpenSSH 9\.6p1 .*Evidence: scan \d+ (?:s|min) ago/,
  );
  const one = await reader.text(`${reader.ssh}/${cves[2]}`);
  assert.match(one, /What CVE-2021-41617 is about\./);
  assert.match(one, /medium 5\.0 .*disputed .*incomplete/);
  assert.match(one, /depends on something that scans do not see/);
  assert.match(one, /Scan [0-9a-f-]{36} /);
  assert.ok(
    (await reader.page(`${reader.path}${reader.ssh}/${cves[2]}`)).includes(
      'href="https://nvd.nist.gov/vuln/detail/CVE-2021-41617"',
    ),
  );
});

test('the list is filtered by severity, also for what is not rated, and paged without a gap', async () => {
  const reader = await createReader('Paged');
  const many = Array.from({ length: 120 }, (_, at) =>
    findingOf(`CVE-2022-${1000 + at}`, {
      severity: at < 3 ? 'low' : 'medium',
      score: at < 3 ? 2 : 5 + (at % 7) / 10,
    }),
  );
  await deliver(
    projectionOf(reader.first, {
      services: [projectedService({ findings: [...many, several().findings[3]!] })],
    }),
  );
  const seen: string[] = [];
  for (let query: string | undefined = ''; query !== undefined; ) {
    const page = await reader.page(`${reader.path}${query}`);
    seen.push(...[...page.matchAll(/<th scope="row"[^>]*><a [^>]*>(CVE-[\d-]+)/g)].map(([, cve]) => cve!));
    query = /href="[^"?]*\/findings(\?[^"]*after=[^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    assert.ok(seen.length <= 121, 'a page comes again');
  }
  assert.equal(new Set(seen).size, 121);
  assert.equal(seen.at(-1), cves[3], 'what is not rated comes last');
  const rows = async (severity: string) =>
    [...(await reader.page(`${reader.path}?severity=${severity}`)).matchAll(/<th scope="row"/g)].length;
  assert.deepEqual([await rows('low'), await rows('unrated'), await rows('critical')], [3, 1, 0]);
  assert.match(await reader.text('?severity=low'), /Only severity low\./);
  assert.equal((await reader.get(`${reader.path}?severity=nonsense&after=1_2_3&view=x`)).status, 200);
});

test('NET-2.6.2: what could not be assessed is listed with the reason; findings of the original are a step away, labelled, and counted nowhere', async () => {
  const reader = await createReader('Packaged');
  const hidden = projectedService({
    ...{
      port: 2222,
      product: null,
      version: null,
      assessment: 'unable',
      reason: 'unknown_product',
      findings: [],
    },
  });
  await deliver(projectionOf(reader.first, { services: [packaged(), hidden] }));
  assert.match(await reader.text(), /2 services found, none of which could be assessed\./);
  const list = await reader.text('?view=unable');
  assert.match(
    list,
    /tcp\/80 .*Apache httpd 2\.4\.57 \(Debian\) .*A package of a Linux distribution\. .*1 not counted/,
  );
  assert.match(
    list,
    /tcp\/2222 .*unknown product This product is not compared with the database\. none listed/,
  );
  assert.doesNotMatch(list, /CVE-2024-38476/);
  const service = `/${reader.first.address}/tcp-80`;
  const page = await reader.text(service);
  assert.match(
    page,
    /Could not be assessed\. .*findings of the original software, not of this package .*CVE-2024-38476/,
  );
  const one = await reader.text(`${service}/CVE-2024-38476`);
  assert.match(one, /Of the original of a package\. Not counted/);
  assert.doesNotMatch(one, /Ignore this finding/);
  const { findings, unable } = await reader.json();
  assert.deepEqual(findings, []);
  assert.deepEqual(
    unable.map(({ port, reason }) => [port, reason]),
    [
      [80, 'distribution_package'],
      [2222, 'unknown_product'],
    ],
  );
  assert.match(await reader.text(`/${reader.first.address}/tcp-2222`), /Nothing is listed/);
  assert.equal((await reader.get(`${reader.path}/${reader.first.address}/tcp-81`)).status, 404);
});

test('NET-2.6.5: a finding is ignored with a reason until a day, by whom is shown, and it is ended; another version is active again', async () => {
  const reader = await createReader('Ignoring');
  await deliver(projectionOf(reader.first, { services: [several()], checkedSecondsAgo: 60 }));
  const done = await reader.ignore(cves[1]);
  assert.deepEqual([done.status, done.headers.get('location')], [303, `${reader.path}?done=ignored`]);
  assert.match(await reader.text('?done=ignored'), /The finding is ignored\./);
  assert.match(await reader.text(), /3 active, 1 high\. 1 ignored\./);
  assert.match(
    await reader.text('?view=ignored'),
    /CVE-2023-38408 .*mended by hand .*Ignoring Owner, .*Until|mended by hand/,
  );
  const one = await reader.text(`${reader.ssh}/${cves[1]}`);
  assert.match(one, /Ignored by Ignoring Owner, until \d{4}-\d\d-\d\d .*Reason mended by hand/);
  assert.deepEqual(
    (await reader.json()).findings.map(({ cve_id, ignored }) => [cve_id, ignored]),
    cves
      .toSorted((a, b) => (a === cves[1] ? -1 : b === cves[1] ? 1 : 0))
      .map((cve) => [cve, cve === cves[1]]),
  );
  const end = (fingerprint: string) =>
    reader.post(`${reader.path}${reader.ssh}/${cves[1]}/end-ignore`, { fingerprint });
  const ended = await end(fingerprintOf('OpenSSH 9.6p1'));
  assert.equal(ended.headers.get('location'), `${reader.path}${reader.ssh}/${cves[1]}?done=ended`);
  assert.match(await reader.text(), /4 active/);
  assert.match((await end(fingerprintOf('OpenSSH 9.6p1'))).headers.get('location')!, /done=gone/);
  await reader.ignore(cves[1], { days: '' });
  assert.match(await reader.text(`${reader.ssh}/${cves[1]}`), /until no expiry/);
  const next = projectedService({
    ...several(),
    version: '9.8p1',
    fingerprint: fingerprintOf('OpenSSH 9.8p1'),
  });
  await deliver(projectionOf(reader.first, { services: [next] }));
  assert.match(await reader.text(), /4 active/);
  const late = await reader.ignore(cves[0]);
  assert.equal(late.headers.get('location'), `${reader.path}?done=gone`, 'the version that was seen is gone');
  assert.match(await reader.text('?done=gone'), /has changed since the page was opened\. Nothing was done\./);
});

test('NET-2.6.5: several findings are ignored at once with one reason; one that has changed keeps no other from it', async () => {
  const reader = await createReader('Several');
  await deliver(projectionOf(reader.first, { services: [several()], checkedSecondsAgo: 60 }));
  const page = await reader.page(reader.path);
  const picks = [...page.matchAll(/type="checkbox" name="finding" value="([^"]+)"/g)].map(
    ([, value]) => value!,
  );
  assert.equal(picks.length, 4);
  const send = (finding: readonly string[], reason = 'mended by hand') =>
    reader.post(`${reader.path}/ignore`, { reason, days: '30', finding });
  const none = await send([]);
  assert.equal(none.headers.get('location'), `${reader.path}?done=none`);
  assert.match(await reader.text('?done=none'), /No finding was selected\./);
  const two = await send(picks.slice(0, 2));
  assert.deepEqual([two.status, two.headers.get('location')], [303, `${reader.path}?done=several`]);
  assert.match(await reader.text(), /2 active\. 2 ignored\./);
  const changed = picks[2]!.replace(fingerprintOf('OpenSSH 9.6p1'), fingerprintOf('OpenSSH 9.7p1'));
  const mixed = await send([changed, picks[3]!]);
  assert.equal(mixed.headers.get('location'), `${reader.path}?done=changed`);
  assert.match(await reader.text(), /1 active\. 3 ignored\./);
  const blank = await send([picks[2]!], ' ');
  assert.equal(blank.status, 422);
  assert.match(textOf(await blank.text()), /reason: is required/);
  assert.equal((await send(['no address tcp-22 CVE-2024-6387 x'])).status, 404);
});

test('NET-2.6.5: the page of a service selects all of its active findings, which one click ignores at every address', async () => {
  const reader = await createReader('One service');
  await deliver(projectionOf(reader.first, { services: [several()], checkedSecondsAgo: 60 }));
  await reader.ignore(cves[3]);
  const page = await reader.page(`${reader.path}${reader.ssh}`);
  const picks = [...page.matchAll(/type="checkbox" name="finding" value="([^"]+)" checked/g)];
  assert.equal(picks.length, 3);
  const finding = picks.map(([, value]) => value!);
  await reader.post(`${reader.path}/ignore`, {
    reason: 'mended by hand',
    days: '30',
    finding,
    everywhere: 'on',
  });
  assert.match(await reader.text(), /0 active|None active/);
  assert.match(await reader.text('?view=ignored'), /CVE-2024-6387 /);
  assert.doesNotMatch(await reader.page(`${reader.path}${reader.ssh}`), /name="finding"/);
});

test('an ignore without a reason, or with one that is no line of text, is refused in words, and nothing that was typed is lost', async () => {
  const reader = await createReader('Typing');
  await deliver(projectionOf(reader.first, { services: [several()] }));
  const empty = await reader.ignore(cves[0], { reason: '   ' });
  assert.equal(empty.status, 422);
  assert.match(textOf(await empty.text()), /reason: is required/);
  const long = await reader.ignore(cves[0], { reason: `${'<b>'.repeat(200)}`, days: '365' });
  assert.equal(long.status, 422);
  const page = await long.text();
  assert.ok(page.includes('&lt;b&gt;&lt;b&gt;') && !page.includes('<b><b>'));
  assert.match(page, /<option value="365" selected/);
  assert.match(await reader.text(), /4 active/);
});

test('NET-2.6.1: a finding of a package says in which version its distribution fixed it', async () => {
  const reader = await createReader('Packages');
  const findings = [
    findingOf(cves[0], { package: { fixed_in: '1:9.2p1-2+deb12u3' } }),
    findingOf(cves[1], { package: { fixed_in: null } }),
    findingOf(cves[2]),
  ];
  const version = '9.2p1 Debian 2+deb12u2';
  await deliver(projectionOf(reader.first, { services: [projectedService({ version, findings })] }));
  assert.match(await reader.text(), /3 active/);
  const of = (cve: string) => reader.text(`${reader.ssh}/${cve}`);
  assert.match(
    await of(cves[0]),
    /fixed it in version 1:9\.2p1-2\+deb12u3 of its package\. Upgrade the package\./,
  );
  assert.match(await of(cves[1]), /calls this version of its package affected, and has no fix yet/);
  assert.doesNotMatch(await of(cves[2]), /of its package/);
});

test('one click ignores a finding at IPv4 and IPv6', async () => {
  const reader = await createReader('Twice');
  assert.equal(reader.allocations.length, 2);
  await deliver(...reader.allocations.map((each) => projectionOf(each)));
  assert.match(await reader.text(), /2 active, 2 high/);
  await reader.ignore(cves[0], { everywhere: 'on' });
  assert.match(await reader.text(), /None active in 2 services assessed\. 2 ignored\./);
});

test('NET-1.6: while the views are off there are no findings and no ignoring, and no count in lists', async () => {
  const reader = await createReader('Off');
  await deliver(projectionOf(reader.first, { services: [several()] }));
  const count = async () => [
    /4 findings/.test(textOf(await reader.page('/client/'))),
    /Potential vulnerabilities .{0,4}4 active, 1 critical/.test(
      textOf(await reader.page(`/client/servers/${reader.serverId}`)),
    ),
  ];
  assert.deepEqual(await count(), [true, true]);
  await switchViews(world, reader, reader.serverId, false);
  for (const tail of ['', '.json', '?view=unable', reader.ssh, `${reader.ssh}/${cves[0]}`])
    assert.equal((await reader.get(`${reader.path}${tail}`)).status, 404, tail);
  assert.equal((await reader.ignore(cves[0])).status, 404);
  assert.deepEqual(await count(), [false, false]);
  await switchViews(world, reader, reader.serverId, true);
  assert.match(await reader.text(), /4 active/, 'what was delivered is there again');
});

test('another customer gets a 404 of every page, and ignores nothing; without its token a form does nothing', async () => {
  const owner = await createReader('Owner');
  const stranger = await createReader('Stranger');
  await deliver(projectionOf(owner.first, { services: [several(), packaged()] }));
  for (const tail of ['', '.json', owner.ssh, `${owner.ssh}/${cves[0]}`])
    assert.equal((await stranger.get(`${owner.path}${tail}`)).status, 404, tail);
  const form = { reason: 'x', days: '30', fingerprint: fingerprintOf('OpenSSH 9.6p1') };
  for (const act of ['ignore', 'end-ignore'])
    assert.equal((await stranger.post(`${owner.path}${owner.ssh}/${cves[0]}/${act}`, form)).status, 404, act);
  // The same address and CVE below a server of one's own.
  assert.equal((await stranger.get(`${stranger.path}${owner.ssh}/${cves[0]}`)).status, 404);
  const own = await stranger.post(`${stranger.path}${owner.ssh}/${cves[0]}/ignore`, form);
  assert.match(own.headers.get('location')!, /done=gone/);
  assert.equal((await owner.ignore(cves[0], { csrf_token: 'x' })).status, 403);
  assert.match(await owner.text(), /4 active/);
});

test('the record of a stranger is text: markup, an unsafe product and long lines stay in the page', async () => {
  const reader = await createReader('Hostile');
  const naughty = `<script>alert(1)</script><img src=x onerror=alert(2)> \`code\` ${'x'.repeat(1500)}`;
  const service = projectedService({
    product: '"><svg onload=alert(3)>',
    findings: [findingOf(cves[0], { summary: naughty, cvss_vector: '"><b>vector' })],
  });
  await deliver(projectionOf(reader.first, { services: [service] }));
  for (const tail of ['', reader.ssh, `${reader.ssh}/${cves[0]}`]) {
    const page = await reader.page(`${reader.path}${tail}`);
    assert.ok(!/<script>alert|<img src=x|<svg onload|<b>vector/.test(page), tail);
  }
  assert.match(await reader.page(`${reader.path}${reader.ssh}/${cves[0]}`), /&lt;script&gt;alert\(1\)/);
});

test('findings.json has each finding and each service that could not be assessed', async () => {
  const reader = await createReader('File');
  await deliver(projectionOf(reader.first, { services: [projectedService(), packaged()] }));
  const { address } = reader.first;
  assert.deepEqual(await reader.json(), {
    findings: [
      {
        ...{ address, transport: 'tcp', port: 22, cve_id: cves[0], severity: 'high', assessment: 'assessed' },
        ignored: false,
      },
    ],
    unable: [
      {
        ...{ address, transport: 'tcp', port: 80, product: 'Apache httpd', version: '2.4.57 (Debian)' },
        ...{ assessment: 'unable', reason: 'distribution_package' },
      },
    ],
  });
});

test('NET-2.6.3: a copy of the database that is old, or was never fetched, is said, and so is what was left out', async () => {
  const reader = await createReader('Aged');
  const day = 86_400_000;
  const at = (days: number) => new Date(world.clock.nowMs() - days * day).toISOString();
  const counts = { active: 1, ignored: 0, unable: 0, truncated: 12 };
  await deliver(projectionOf(reader.first, { database_at: at(30), counts, checkedSecondsAgo: 60 }));
  const page = await reader.text();
  assert.match(page, /The copy of the database was fetched 30 days ago/);
  assert.match(page, /12 more findings are not listed/);
  const none = projectedService({ assessment: 'unable', reason: 'no_database', findings: [] });
  await deliver(projectionOf(reader.first, { database_at: null, services: [none] }));
  assert.match(await reader.text('?view=unable'), /Records of this product have not been fetched yet\./);
  assert.match(await reader.text(), /No records of these products have been fetched yet\./);
});
