import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import type { Visitor } from '#monitor/testing/server.ts';
import {
  type AssessWorld,
  addressOf,
  nginx,
  openssh,
  startAssessWorld,
} from '#monitor/vulnerabilities/testing/assess-world.ts';
import { records } from '#monitor/vulnerabilities/testing/records/index.ts';

const hostile = '<img src=x onerror=alert(1)>';
const packaged = openssh('9.6p1 Ubuntu 3ubuntu13.5', { cpe: ['cpe:/a:openbsd:openssh:9.6p1'] });

let world: AssessWorld;
let operator: Visitor;
let viewer: Visitor;
let path: string;
before(async () => {
  world = await startAssessWorld();
  const told = structuredClone(records);
  told.find(({ cve }) => cve.id === 'CVE-2024-6387')!.cve.descriptions[1]!.value = hostile;
  await world.copyRecords(told);
  await world.scan(addressOf(1), [openssh('8.9'), nginx('1.18.0', { extra_info: hostile })]);
  await world.scan(addressOf(2), [packaged, nginx('1.24.0')]);
  await world.assess();
  [operator, viewer] = [await world.signIn('operator'), await world.signIn('viewer')];
  path = `/sites/${world.siteId}/vulnerabilities`;
});
after(() => world[Symbol.asyncDispose]());

type Row = Record<string, unknown>;
async function rows(of: string, table: string): Promise<Row[]> {
  const sign = of.includes('?') ? '&' : '?';
  const { status, text } = await viewer.get(`${of}${sign}format=json&table=${table}`);
  assert.equal(status, 200, text);
  return JSON.parse(text).rows;
}
const serverPath = (serverId: number) => `${path}/servers/7/${serverId}`;
const fieldsOf = async (cve: string, serverId = 1) => {
  const [service] = await rows(serverPath(serverId), 'services').then((all) =>
    all.filter(({ port }) => port === 'tcp/22'),
  );
  const { address, fingerprint } = service as { address: string; fingerprint: string };
  return { address, transport: 'tcp', port: '22', fingerprint, cve };
};

test('NET-2.6.1: servers are listed by severity, active and ignored apart, with the ages of evidence and records', async () => {
  const { status, text } = await viewer.get(path);
  assert.equal(status, 200);
  assert.match(text, /active potential vulnerabilities, \d+ critical, on 1 server\./);
  assert.match(text, /not confirmed that the server can be attacked/);
  assert.match(text, /not endorsed or certified by the NVD/);
  const [first, second] = await rows(path, 'servers');
  assert.deepEqual([first!.server, second!.server], ['server-1', 'server-2']);
  assert.ok(Number(first!.critical) >= 2 && Number(first!.high) >= 1);
  assert.deepEqual([second!.critical, second!.high, second!.unable, second!.services], [0, 0, 2, 2]);
  for (const field of ['checked_at', 'database_at', 'evidence_at']) assert.ok(first![field], field);
});

test('NET-2.6.2: packages are unable to be assessed; what their originals have is one step away and no finding', async () => {
  const services = await rows(serverPath(2), 'services');
  assert.deepEqual(
    services.map(({ port, assessment, reason, active }) => [port, assessment, reason, active]),
    [
      ['tcp/22', 'unable', 'distribution_package', null],
      ['tcp/80', 'unable', 'likely_packaged', null],
    ],
  );
  assert.deepEqual(await rows(serverPath(2), 'findings'), []);
  const closed = await viewer.get(serverPath(2));
  assert.doesNotMatch(closed.text, /CVE-2024-6387/);
  assert.match(closed.text, /Its original has \d+/);
  const open = await viewer.get(`${serverPath(2)}?open=${encodeURIComponent(`${addressOf(2)} tcp/22`)}`);
  assert.match(open.text, /CVE-2024-6387/);
  assert.match(open.text, /not findings of this service/);
});

test('findings name their evidence, and what a record or a service writes is shown as text', async () => {
  const found = await rows(serverPath(1), 'findings');
  const race = found.find(({ cve }) => cve === 'CVE-2024-6387')!;
  assert.deepEqual([race.severity, race.score, race.service], ['high', 8.1, 'tcp/22 OpenSSH 8.9']);
  assert.match(String(race.scan_id), /^[0-9a-f-]{36}$/);
  for (const page of [path, `${path}?view=cves`, serverPath(1), `${path}/cves/CVE-2024-6387`]) {
    const { status, text } = await operator.get(page);
    assert.equal(status, 200, page);
    assert.doesNotMatch(text, /<img src=x/, page);
  }
  assert.match((await viewer.get(serverPath(1))).text, /&lt;img src=x/);
  assert.match((await viewer.get(`${path}/cves/CVE-2024-6387`)).text, /&lt;img src=x/);
});

test('NET-2.6.1: a record that names every version is shown apart, with why', async () => {
  const apart = await rows(serverPath(1), 'apart');
  assert.deepEqual(
    apart.map(({ cve, why }) => [cve, why]),
    [['CVE-2007-2768', 'any_version']],
  );
  assert.match((await viewer.get(serverPath(1))).text, /any version, says the record/);
  assert.equal(
    (await rows(serverPath(1), 'findings')).filter(({ cve }) => cve === 'CVE-2007-2768').length,
    0,
  );
});

test('by CVE: what a record touches, known exploited ones first', async () => {
  const list = await rows(`${path}?view=cves`, 'cves');
  assert.equal(list[0]!.known_exploited, true);
  assert.equal(list.find(({ cve }) => cve === 'CVE-2024-6387')!.services, 1, 'the package is not touched');
  const touched = await rows(`${path}/cves/CVE-2024-6387`, 'touched');
  assert.deepEqual(
    touched.map(({ server, port, state }) => [server, port, state]),
    [['server-1', 'tcp/22', 'active']],
  );
  for (const unknown of ['CVE-1999-00001', 'CVE-x', '%3Cimg%3E'])
    assert.equal((await viewer.get(`${path}/cves/${unknown}`)).status, 404, unknown);
});

test('NET-2.6.5: an operator ignores a finding with a reason and until when, and ends that; a viewer may not', async () => {
  const cve = 'CVE-2024-6387';
  const fields = await fieldsOf(cve);
  const form = `${serverPath(1)}/ignore`;
  const at = `${form}?${new URLSearchParams(fields)}`;
  assert.equal((await viewer.get(at)).status, 403);
  assert.equal((await viewer.post(form, { ...fields, reason: 'no' })).status, 403);
  assert.equal((await operator.post(form, { ...fields, reason: 'x', csrf_token: 'wrong' })).status, 403);
  assert.match((await operator.get(at)).text, /Ignore CVE-2024-6387/);

  const refused = await operator.post(form, { ...fields, reason: '   ' });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /Enter a reason/);
  const past = await operator.post(form, { ...fields, reason: 'kept text', until: '2020-01-01T00:00' });
  assert.equal(past.status, 422);
  assert.match(past.text, /kept text/);
  assert.equal((await operator.post(form, { ...fields, reason: 'a', until: 'tomorrow' })).status, 422);
  assert.equal((await operator.post(form, { ...fields, cve: 'CVE-1999-0001', reason: 'a' })).status, 404);
  assert.equal((await operator.post(form, { ...fields, fingerprint: 'other', reason: 'a' })).status, 404);

  const active = (await rows(serverPath(1), 'findings')).length;
  const done = await operator.post(form, { ...fields, reason: hostile, until: '2099-01-01T00:00' });
  assert.equal(done.status, 303);
  assert.equal((await rows(serverPath(1), 'findings')).length, active - 1);
  const [ignored] = await rows(serverPath(1), 'ignored');
  assert.deepEqual(
    [ignored!.cve, ignored!.reason, ignored!.by, ignored!.until],
    [cve, hostile, 'operator@monitor.example', '2099-01-01T00:00:00.000Z'],
  );
  assert.equal((await rows(path, 'servers'))[0]!.ignored, 1);
  const page = await operator.get(serverPath(1));
  assert.doesNotMatch(page.text, /<img src=x/);
  assert.equal((await rows(`${path}/cves/${cve}`, 'touched'))[0]!.state, 'ignored');
  assert.equal((await operator.post(form, { ...fields, reason: 'again' })).status, 422);

  const action = /action="([^"]*\/ignores\/\d+\/end)"/.exec(page.text)![1]!;
  assert.doesNotMatch((await viewer.get(serverPath(1))).text, /\/ignores\/\d+\/end/);
  assert.equal((await operator.post(action.replace('/servers/7/1/', '/servers/7/2/'))).status, 404);
  assert.equal((await operator.post(action)).status, 303);
  assert.equal((await operator.post(action)).status, 404);
  assert.equal((await rows(serverPath(1), 'findings')).length, active);
  const [ended] = await rows(serverPath(1), 'past-ignores');
  assert.deepEqual([ended!.cve, ended!.ended_by], [cve, 'operator@monitor.example']);
});

test('a server is shown in its own site only', async () => {
  const other = await world.monitor.sites.create(systemActor, 'Other site');
  assert.equal((await viewer.get(`/sites/${other.id}/vulnerabilities/servers/7/1`)).status, 404);
  const { status, text } = await viewer.get(`/sites/${other.id}/vulnerabilities`);
  assert.equal(status, 200);
  assert.match(text, /No scan found an open port yet\./);
  assert.equal((await viewer.get(`${path}/servers/7/999`)).status, 404);
});
