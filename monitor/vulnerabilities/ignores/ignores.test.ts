import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import type { ServiceWithFindings } from '../index.ts';
import { type AssessWorld, addressOf, openssh, startAssessWorld } from '../testing/assess-world.ts';
import type { IgnoreInput } from './index.ts';

let world: AssessWorld;
before(async () => {
  world = await startAssessWorld();
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  await world.pool.query(
    `truncate scan_attempts, scan_observations, scan_identifications, vulnerability_servers, vulnerability_software, vulnerability_products,
      vulnerability_advisories, vulnerability_ignores, allocation_targets, leases cascade`,
  );
  await world.copyRecords();
  for (const serverId of [1, 2]) await world.scan(addressOf(serverId), [openssh('9.6')], { endedAgo: 300 });
  await world.assess();
});

const cve = 'CVE-2024-6387';
const hour = 3_600_000;
const read = async (serverId = 1) => (await world.vulnerabilities.readServer(7, serverId))!;
async function inputOf(change: Partial<IgnoreInput> = {}): Promise<IgnoreInput> {
  const [{ address, transport, port, fingerprint }] = (await read(change.serverId)).services.slice(0, 1) as [
    ServiceWithFindings,
  ];
  return {
    ...{ clusterId: 7, serverId: 1, address, transport, port, fingerprint, cve },
    ...{ reason: 'sshd is behind a VPN', untilMs: null, ...change },
  };
}
const ignore = async (change?: Partial<IgnoreInput>) =>
  world.vulnerabilities.ignore(systemActor, await inputOf(change));
/** Whether the finding is ignored, and the server's counts. */
async function standing(serverId = 1) {
  const { server, services } = await read(serverId);
  const found = services[0]?.findings.find(({ finding }) => finding.cve === cve);
  return [found ? (found.ignore === null ? 'active' : 'ignored') : 'none', server.high, server.ignored];
}
/** As operations lists allocations. */
async function assign(allocationId: number, assignedAt: string) {
  await world.pool.query('truncate allocation_targets');
  await world.pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at,
      is_supported) values ($1, 1, 1, 7, $2, $3, true)`,
    [allocationId, addressOf(1), assignedAt],
  );
}
const visit = async () => {
  await world.pool.query('update vulnerability_servers set due_at = svc_now()');
  await world.assess();
};

test('NET-2.6.1: an ignored finding is counted apart from active ones, with its reason and its author, until it is ended', async () => {
  const [, high, none] = await standing();
  assert.deepEqual([none, high], [0, high]);
  const checked = (await read()).server.checkedAtMs!;
  const id = await ignore();
  assert.deepEqual(await standing(), ['ignored', Number(high) - 1, 1]);
  assert.deepEqual(await standing(2), ['active', high, 0], 'of this server alone');
  assert.ok((await read()).server.checkedAtMs! > checked, 'operations is told');
  const [one] = await world.vulnerabilities.listIgnores({ clusterId: 7, serverId: 1 }, 10);
  assert.deepEqual(
    [one!.id, one!.reason, one!.createdBy, one!.untilMs, one!.endedAtMs, one!.isCurrent],
    [id, 'sshd is behind a VPN', systemActor.name ?? systemActor.kind, null, null, true],
  );
  await assert.rejects(ignore(), { code: 'vulnerabilities.ignored' });
  assert.equal(await world.vulnerabilities.endIgnore(systemActor, id), true);
  assert.deepEqual(await standing(), ['active', high, 0]);
  assert.equal(await world.vulnerabilities.endIgnore(systemActor, id), false);
  const audited = await world.rows<{ operation: string }>('select operation from audit_entries order by id');
  assert.deepEqual(
    audited.map(({ operation }) => operation).filter((text) => text.startsWith('finding.')),
    ['finding.ignore', 'finding.end_ignore'],
  );
});

test('NET-2.6.5: another version of the software inherits no ignore', async () => {
  await ignore();
  await world.scan(addressOf(1), [openssh('9.5')], { endedAgo: 100 });
  await world.assess();
  assert.equal((await standing())[0], 'active');
  const [one] = await world.vulnerabilities.listIgnores({ siteId: world.siteId }, 10);
  assert.equal(one!.isCurrent, false);
  await world.scan(addressOf(1), [openssh('9.6')], { endedAgo: 10 });
  await world.assess();
  assert.equal((await standing())[0], 'ignored', 'what was ignored is there again');
});

test('NET-2.6.5: an address that is assigned anew inherits no ignore', async () => {
  await assign(4, '2026-01-01T00:00:00.123456Z');
  await ignore();
  await visit();
  assert.equal((await standing())[0], 'ignored');
  await world.pool.query('truncate allocation_targets');
  await visit();
  assert.equal((await standing())[0], 'ignored', 'operations listed nothing, which says nothing');
  await assign(4, '2026-01-01T00:00:01.123456Z');
  await visit();
  assert.equal((await standing())[0], 'active');
  const [one] = await world.vulnerabilities.listIgnores({ siteId: null }, 10);
  assert.equal(one!.endedBy, 'reassigned');
});

test('NET-2.6.5: an ignore from before operations listed the address is of the allocation of that time', async () => {
  await ignore();
  await assign(4, new Date(Date.now() - hour).toISOString());
  await visit();
  assert.equal((await standing())[0], 'ignored');
  await assign(5, new Date(Date.now() + hour).toISOString());
  await visit();
  assert.equal((await standing())[0], 'active');
});

test('NET-2.6.1: an ignore with an end is over at that time', async () => {
  const id = await ignore({ untilMs: Date.now() + hour });
  assert.equal((await standing())[0], 'ignored');
  const [{ soon }] = (await world.rows<{ soon: boolean }>(
    "select due_at < svc_now() + interval '61 minutes' as soon from vulnerability_servers where vm_id = 1",
  )) as [{ soon: boolean }];
  assert.ok(soon, 'its server is visited then');
  await world.pool.query(
    "update vulnerability_ignores set until = svc_now() - interval '1 second' where id = $1",
    [id],
  );
  assert.equal((await standing())[0], 'active');
  await visit();
  assert.deepEqual((await standing()).slice(2), [0]);
  assert.equal((await world.vulnerabilities.listIgnores({ siteId: null }, 10))[0]!.endedBy, 'expired');
  await ignore();
  assert.equal((await standing())[0], 'ignored', 'it can be ignored again');
});

test('ignores name a finding that is there, a reason and an end in the future; viewers may not change them', async () => {
  const refuses = async (change: Partial<IgnoreInput>, code: string) =>
    assert.rejects(ignore(change), { code }, JSON.stringify(change));
  for (const reason of ['', ' \n ', 'x'.repeat(501)]) await refuses({ reason }, 'vulnerabilities.invalid');
  for (const untilMs of [Date.now() - 1, Number.NaN]) await refuses({ untilMs }, 'vulnerabilities.invalid');
  await refuses({ cve: 'CVE-1999-0001' }, 'vulnerabilities.no_finding');
  await refuses({ port: 23 }, 'vulnerabilities.no_finding');
  await refuses({ address: 'no address' }, 'vulnerabilities.no_finding');
  await refuses({ address: addressOf(2) }, 'vulnerabilities.no_finding');
  await refuses({ fingerprint: '0'.repeat(64) }, 'vulnerabilities.no_finding');
  const viewer = { kind: 'person', id: 1, role: 'viewer' } as const;
  await assert.rejects(world.vulnerabilities.ignore(viewer, await inputOf()));
  assert.deepEqual(await world.vulnerabilities.listIgnores({ siteId: null }, 10), []);
});
