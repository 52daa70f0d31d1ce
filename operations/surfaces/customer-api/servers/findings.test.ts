import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Projection } from '#contracts/admin-api/vulnerabilities.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import {
  createFindingMonitor,
  findingOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
let monitor: Awaited<ReturnType<typeof createFindingMonitor>>;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
  monitor = await createFindingMonitor(world);
});
after(() => world[Symbol.asyncDispose]());

interface Listed {
  address: string;
  port: number;
  cve_id: string;
  fingerprint: string;
  state: string;
  package: { fixed_in: string | null } | null;
}

/** A customer with a server that is two days old. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  await world.backdate(serverId, '2 days');
  const [first, second] = await world.addresses.listAllocationsOfServers([serverId]);
  const path = `/api/v2/servers/${serverId}/findings`;
  const read = (query = '', as = key) => call('GET', `${path}${query}`, { key: as });
  const find = async (cve: string) =>
    ((await read()).body.findings as Listed[]).find(({ cve_id }) => cve_id === cve)!;
  const keyOf = ({ address, port, fingerprint, cve_id }: Listed) => ({
    ...{ address, transport: 'tcp', port, fingerprint, cve_id },
  });
  const ignore = async (cve: string, more: object = {}, as = key) =>
    call('POST', `${path}/ignores`, {
      key: as,
      body: { ...keyOf(await find(cve)), reason: 'Behind our firewall', ...more },
    });
  const end = (finding: Listed, as = key) => {
    const query = new URLSearchParams({ ...keyOf(finding), port: String(finding.port) });
    return call('DELETE', `${path}/ignores?${query}`, { key: as });
  };
  const states = async () =>
    Object.fromEntries(((await read()).body.findings as Listed[]).map((one) => [one.cve_id, one.state]));
  let seconds = 1000;
  /** A later check of the first address. */
  const deliver = async (more: Partial<Projection> = {}) => {
    seconds -= 10;
    const outcomes = await monitor.deliver(projectionOf(first!, { checkedSecondsAgo: seconds, ...more }));
    assert.deepEqual(outcomes, ['accepted']);
  };
  return {
    ...customer,
    key,
    serverId,
    path,
    read,
    find,
    keyOf,
    ignore,
    end,
    states,
    deliver,
    second,
    first: first!,
  };
}

/** As the operation names a finding. */
const named = ({ address, port, fingerprint, cve_id: cveId }: Listed) =>
  ({ address, transport: 'tcp', port, fingerprint, cveId }) as const;

const two = [findingOf('CVE-2024-6387'), findingOf('CVE-2023-38408', { severity: 'critical', score: 9.8 })];

test('NET-2.6.1: findings are listed with severity, evidence and ages, active and ignored ones counted apart', async () => {
  const reader = await createReader('Lists');
  const observed = secondsAgo(2000);
  await reader.deliver({
    services: [
      projectedService({ observed_at: observed, findings: two }),
      projectedService({ port: 80, assessment: 'unable', reason: 'no_version', version: null, findings: [] }),
    ],
  });
  await reader.ignore('CVE-2024-6387');
  const { status, body } = await reader.read();
  assert.equal(status, 200);
  assert.deepEqual(
    body.findings.map((one: Listed) => [one.cve_id, one.state]),
    [
      ['CVE-2023-38408', 'active'],
      ['CVE-2024-6387', 'ignored'],
    ],
  );
  const { fingerprint, scan_id, first_found_at, checked_at, summary, ...finding } = body.findings[0];
  assert.deepEqual(finding, {
    ...{ address: reader.first.address, transport: 'tcp', port: 22, product: 'OpenSSH', version: '9.6p1' },
    ...{ observed_at: observed, cve_id: 'CVE-2023-38408', state: 'active', severity: 'critical', score: 9.8 },
    ...{ cvss_version: '3.1', cvss_vector: 'CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:H/I:H/A:H' },
    ...{ published_at: '2024-07-01T13:15:00.000Z', modified_at: '2025-09-30T13:52:00.000Z' },
    ...{ incomplete: null, disputed: false, known_exploited: false, package: null, ignore: null },
  });
  assert.deepEqual(body.counts, { active: 1, ignored: 1, unable: 1, truncated: 0 });
  assert.deepEqual(
    body.unable.map((one: { port: number; reason: string }) => [one.port, one.reason]),
    [[80, 'no_version']],
  );
  const { created_at, created_by, ...ignore } = body.findings[1].ignore;
  assert.deepEqual(ignore, { reason: 'Behind our firewall', until: null, by_key: true });
  assert.ok(created_at > checked_at && first_found_at > checked_at);
});

test('a finding of a package names the version in which its distribution fixed it', async () => {
  const reader = await createReader('Packages');
  const fix = { fixed_in: '1:9.2p1-2+deb12u3' };
  const findings = [findingOf('CVE-2024-6387', { package: fix }), findingOf('CVE-2023-38408')];
  await reader.deliver({ services: [projectedService({ findings })] });
  const { body } = await reader.read();
  assert.deepEqual(
    body.findings.map((one: Listed) => [one.cve_id, one.package]),
    [
      ['CVE-2023-38408', null],
      ['CVE-2024-6387', fix],
    ],
  );
});

test('pages follow each other without a gap or a repetition, and filters are kept', async () => {
  const reader = await createReader('Pages');
  const cves = Array.from({ length: 12 }, (_, n) =>
    findingOf(`CVE-2020-${1000 + n}`, {
      ...(n % 3 === 0 ? { severity: null, score: null } : { score: (n % 4) + 0.5 }),
      known_exploited: n === 7,
    }),
  );
  const services = [22, 2222].map((port) => projectedService({ port, findings: cves }));
  await reader.deliver({ services });
  const whole = (await reader.read('?limit=200')).body.findings.map(
    (one: Listed) => `${one.port} ${one.cve_id}`,
  );
  assert.equal(whole.length, 24);
  assert.match(whole[0], /CVE-2020-1007/);
  const paged: string[] = [];
  for (let query: string | null = '?limit=5'; query !== null; ) {
    const {
      body,
      headers,
    }: {
      body: { findings: Listed[]; pagination: { total: number; next_cursor: string | null } };
      headers: Headers;
    } = await reader.read(query);
    paged.push(...body.findings.map((one) => `${one.port} ${one.cve_id}`));
    assert.equal(body.pagination.total, 24);
    const { next_cursor: next } = body.pagination;
    assert.equal(headers.has('link'), next !== null);
    query = next === null ? null : `?limit=5&cursor=${next}`;
  }
  assert.deepEqual(paged, whole);
  const unrated = await reader.read('?severity=unrated,critical&state=active');
  assert.equal(unrated.body.pagination.total, 8);
  for (const [query, reason] of [
    ['?cursor=abc', 'invalid_cursor'],
    ['?severity=severe', 'invalid_fields'],
    ['?state=open', 'invalid_fields'],
  ] as const)
    assert.equal((await reader.read(query)).body.error.reason, reason);
});

test('NET-2.6.5: an ignore holds for this version, port, CVE and assignment alone', async () => {
  const reader = await createReader('Bound');
  const at = (version: string, port = 22) => projectedService({ version, port, findings: two });
  await reader.deliver({ services: [at('9.6p1'), at('9.6p1', 2222)] });
  const first = await reader.ignore('CVE-2024-6387');
  assert.equal(first.status, 201);
  const states = async () =>
    ((await reader.read()).body.findings as Listed[])
      .filter(({ state }) => state === 'ignored')
      .map(({ port, cve_id }) => `${port} ${cve_id}`);
  const { port } = first.body.findings[0];
  assert.deepEqual(await states(), [`${port} CVE-2024-6387`]);
  await monitor.deliver(projectionOf(reader.second!, { services: [at('9.6p1'), at('9.6p1', 2222)] }));
  assert.deepEqual(await states(), [`${port} CVE-2024-6387`], 'another address');
  await reader.deliver({ services: [at('9.6p1'), at('9.6p1', 2222)] });
  assert.deepEqual(await states(), [`${port} CVE-2024-6387`], 'the same version again');
  await reader.deliver({ services: [at('9.7p1'), at('9.7p1', 2222)] });
  assert.deepEqual(await states(), [], 'another version');
  await reader.deliver({ services: [at('9.6p1'), at('9.6p1', 2222)] });
  await world.database.pool.query(
    `with ended as (update allocations set released_at = svc_now() where id = $1 returning *)
     insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary, assigned_at)
     select pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary, assigned_at from ended`,
    [reader.first.id],
  );
  const [again] = (await world.addresses.listAllocationsOfServers([reader.serverId])).filter(
    ({ address }) => address === reader.first.address,
  );
  await monitor.deliver(projectionOf(again!, { services: [at('9.6p1'), at('9.6p1', 2222)] }));
  assert.deepEqual(new Set(Object.values(await reader.states())), new Set(['active']), 'assigned again');
});

test('NET-2.6.5: an ignore ends when it is ended or its time is over, and a repeated one stays as it was', async () => {
  const reader = await createReader('Ends');
  await reader.deliver({ services: [projectedService({ findings: two })] });
  const until = new Date(world.clock.nowMs() + 3_600_000).toISOString();
  const made = await reader.ignore('CVE-2024-6387', { until });
  assert.deepEqual(
    [made.status, made.body.findings[0].state, made.body.findings[0].ignore.until],
    [201, 'ignored', until],
  );
  const repeated = await reader.ignore('CVE-2024-6387', { reason: 'Another', until: null });
  assert.deepEqual([repeated.status, repeated.body], [200, made.body]);
  await moveWorldClock(world.database, '61 minutes');
  assert.equal((await reader.states())['CVE-2024-6387'], 'active');
  await moveWorldClock(world.database, '0');
  assert.equal((await reader.states())['CVE-2024-6387'], 'ignored');
  const finding = await reader.find('CVE-2024-6387');
  assert.equal((await reader.end(finding)).status, 204);
  assert.equal((await reader.states())['CVE-2024-6387'], 'active');
  assert.equal((await reader.end(finding)).status, 204, 'idempotent');
  assert.equal((await reader.ignore('CVE-2024-6387')).status, 201, 'again');
});

test('an ignore without an address holds at every address of the server that has the finding', async () => {
  const reader = await createReader('Everywhere');
  const [, second] = await world.addresses.listAllocationsOfServers([reader.serverId]);
  const services = [projectedService({ findings: two })];
  await reader.deliver({ services });
  assert.deepEqual(await monitor.deliver(projectionOf(second!, { services })), ['accepted']);
  const ignored = await reader.ignore('CVE-2024-6387', { address: undefined });
  assert.equal(ignored.status, 201);
  assert.equal(ignored.body.findings.length, 2);
  assert.deepEqual((await reader.read()).body.counts, { active: 2, ignored: 2, unable: 0, truncated: 0 });
  const { address: _, ...key } = reader.keyOf(await reader.find('CVE-2024-6387'));
  const query = new URLSearchParams({ ...key, port: String(key.port) });
  assert.equal((await call('DELETE', `${reader.path}/ignores?${query}`, { key: reader.key })).status, 204);
  assert.equal((await reader.read()).body.counts.ignored, 0);
});

test('an ignore without a reason, with a past end, or of a finding that the server does not have is a 422 with the field', async () => {
  const reader = await createReader('Refused');
  await reader.deliver({ services: [projectedService({ findings: two })] });
  for (const [more, path] of [
    [{ reason: '' }, 'reason'],
    [{ reason: '  ' }, 'reason'],
    [{ reason: 'a'.repeat(501) }, 'reason'],
    [{ reason: 'a\nb' }, 'reason'],
    [{ until: '2020-01-01T00:00:00Z' }, 'until'],
    [{ until: '2099-01-01T00:00:00Z' }, 'until'],
    [{ until: 'tomorrow' }, 'until'],
    [{ cve_id: 'CVE-1999-0001' }, 'cve_id'],
    [{ port: 23 }, 'cve_id'],
    [{ fingerprint: '0'.repeat(64) }, 'cve_id'],
    [{ address: '203.0.113.250' }, 'cve_id'],
    [{ server_id: 7 }, 'server_id'],
  ] as const) {
    const { status, body } = await reader.ignore('CVE-2024-6387', more);
    assert.deepEqual([status, body.error.fields?.[0]?.path], [422, path], JSON.stringify(more));
  }
  assert.deepEqual(new Set(Object.values(await reader.states())), new Set(['active']));
});

test('a read key lists findings and ignores none; the server of another customer is a 404', async () => {
  const reader = await createReader('Reads');
  const other = await createReader('Others');
  await reader.deliver({ services: [projectedService({ findings: two })] });
  const key = await world.createKey(reader, 'read');
  const finding = await reader.find('CVE-2024-6387');
  assert.equal((await reader.read('', key)).status, 200);
  assert.deepEqual(
    [(await reader.ignore('CVE-2024-6387', {}, key)).status, (await reader.end(finding, key)).status],
    [403, 403],
  );
  assert.equal((await reader.read('', other.key)).status, 404);
  assert.equal((await reader.ignore('CVE-2024-6387', {}, other.key)).status, 404);
  assert.equal((await reader.ignore('CVE-2024-6387')).status, 201);
  assert.equal((await reader.end(finding, other.key)).status, 404);
  assert.equal((await reader.states())['CVE-2024-6387'], 'ignored');
  const input = { ...named(await reader.find('CVE-2023-38408')), reason: 'Theirs', until: null };
  await assert.rejects(world.protectFindings.ignore(ownerOf(other), reader.serverId, input), {
    code: 'protect_findings.not_found',
  });
});

test('NET-1.6: while the protection views are off, all three calls are a 404, and what was ignored stays so', async () => {
  const reader = await createReader('Off');
  await reader.deliver({ services: [projectedService({ findings: two })] });
  await reader.ignore('CVE-2024-6387');
  const finding = await reader.find('CVE-2023-38408');
  const body = { ...reader.keyOf(finding), reason: 'Off' };
  await switchViews(world, reader, reader.serverId, false);
  for (const answer of [
    await reader.read(),
    await call('POST', `${reader.path}/ignores`, { key: reader.key, body }),
    await reader.end(finding),
  ])
    assert.deepEqual([answer.status, answer.body.error.reason], [404, 'protect_disabled']);
  const key = named(finding);
  const viewsOff = { code: 'protect_findings.views_off' };
  const { ignore, endIgnore } = world.protectFindings;
  const input = { ...key, reason: 'Off', until: null };
  await assert.rejects(ignore(ownerOf(reader), reader.serverId, input), viewsOff);
  await assert.rejects(endIgnore(ownerOf(reader), reader.serverId, key), viewsOff);
  await switchViews(world, reader, reader.serverId, true);
  assert.deepEqual(await reader.states(), { 'CVE-2023-38408': 'active', 'CVE-2024-6387': 'ignored' });
});

test('API-8.3, API-8.4: all three calls are counted; a read key’s refused write is not', async () => {
  const reader = await createReader('Counted');
  await reader.deliver({ services: [projectedService({ findings: two })] });
  const finding = await reader.find('CVE-2024-6387');
  const body = { ...reader.keyOf(finding), reason: 'Counted' };
  const key = await world.createKey(reader, 'read');
  const used = async (answer: Promise<{ headers: Headers }>) =>
    (await answer).headers.get('x-api-quota-used');
  const path = `${reader.path}/ignores`;
  assert.equal(await used(reader.read()), '2');
  assert.equal(await used(call('POST', path, { key: reader.key, body })), '3');
  assert.equal(await used(reader.end(finding)), '4');
  assert.equal(await used(call('POST', path, { key, body })), null);
  assert.equal(await used(reader.end(finding, key)), null);
  assert.equal(await world.metering.countOfMonth(reader.tenant.id), 4);
});
