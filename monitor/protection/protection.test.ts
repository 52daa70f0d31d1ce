import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CodedError, hasCode } from '#common/errors/index.ts';
import { thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import { type Actor, systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import type { Protection, ThresholdTexts } from './index.ts';

const ada: Actor = { kind: 'person', id: 1, role: 'operator', name: 'ada@example.com' };
const viewer: Actor = { kind: 'person', id: 2, role: 'viewer', name: 'vi@example.com' };
const none: ThresholdTexts = { inbound: {}, outbound: {} };
const inbound = (texts: ThresholdTexts['inbound']): ThresholdTexts => ({ inbound: texts, outbound: {} });

let world: MonitorWorld;
let protection: Protection;
let siteId: number;
before(async () => {
  world = await createMonitorWorld();
  protection = world.protection;
  await world.rows('insert into site_clusters (cluster_id, site_id) values (7, $1)', [world.siteId]);
  await world.rows(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
     select n, 1, n, 7, '198.51.100.0'::inet + n, '2026-01-01T00:00:00Z', true from generate_series(1, 20) n`,
  );
  await world.rows(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
     select 7, n, 'node-1', 'server-' || n, 'running', '2026-01-01' from generate_series(1, 20) n`,
  );
});
after(() => world[Symbol.asyncDispose]());
// Each test has a site of its own with the cluster.
async function newSite(): Promise<number> {
  const site = await world.sites.create(systemActor, `Site ${Math.random()}`);
  await world.sites.mapCluster(systemActor, 7, site.id);
  siteId = site.id;
  return siteId;
}
const revisionOf = async () => (await protection.describeSite(siteId, [])).settings.site.revision;
const setSite = async (texts: ThresholdTexts) =>
  protection.setSiteThresholds(ada, siteId, texts, await revisionOf());
const addGroup = (name: string, prefixes: string[], thresholds: ThresholdTexts = none) =>
  protection.saveGroup(ada, siteId, null, { name, prefixes, thresholds }, 0);
const detection = async () => (await protection.section.read({ siteId, node: null })).detection!;
const audited = () =>
  world.rows<{ operation: string; name: string; before: object; after: object }>(
    `select operation, actor_name as name, before, after from audit_entries
     where operation like 'protection%' and $1 in ((after->>'siteId')::bigint, (before->>'siteId')::bigint) order by id`,
    [siteId],
  );
/** The fields that a refused change names. */
async function refusedFields(change: Promise<unknown>): Promise<Record<string, string>> {
  try {
    await change;
  } catch (error) {
    assert.ok(error instanceof CodedError && error.code === 'protection.invalid', String(error));
    return (error.details.fields ?? {}) as Record<string, string>;
  }
  return assert.fail('was not refused');
}

test('a threshold of an address comes from the nearest level that sets it: address, server, group, site, default', async () => {
  await newSite();
  await setSite(inbound({ pps: '40k', bps: 'off', udp_pps: '20k' }));
  await addGroup('Web', ['198.51.100.0/24'], inbound({ pps: '30k', syn_pps: '8000', icmp_pps: 'off' }));
  await protection.setServerThresholds(
    ada,
    siteId,
    { clusterId: 7, serverId: 5 },
    inbound({ syn_pps: '6000', udp_bps: '1.5G' }),
    0,
  );
  await protection.setServerThresholds(
    ada,
    siteId,
    { address: '198.51.100.5' },
    inbound({ udp_bps: '2G' }),
    0,
  );
  const { resolved, servers, protectedBy } = await protection.explainAddress(siteId, '198.51.100.5');
  assert.deepEqual(protectedBy, { kind: 'target' });
  assert.deepEqual(
    servers.map((one) => one.name),
    ['server-5'],
  );
  const of = (metric: keyof typeof resolved.inbound) => Object.values(resolved.inbound[metric]).slice(0, 2);
  assert.deepEqual(of('udp_bps'), [2e9, 'address']);
  assert.equal(resolved.inbound.udp_bps.inherited, 1.5e9);
  assert.deepEqual(of('syn_pps'), [6000, 'server']);
  assert.deepEqual(of('pps'), [30_000, 'group']);
  assert.deepEqual(of('icmp_pps'), [null, 'group']);
  assert.deepEqual(of('udp_pps'), [20_000, 'site']);
  assert.deepEqual(of('bps'), [null, 'site']);
  assert.deepEqual(of('fragment_pps'), [5000, 'default']);
  assert.deepEqual(
    Object.values(resolved.outbound).map((one) => one.value),
    Object.values(thresholdDefaults.outbound),
  );
});

test('of overlapping groups the longest prefix counts, and a group that leaves a metric open has the site’s, not the wider group’s', async () => {
  await newSite();
  await addGroup('Wide', ['198.51.100.0/24'], inbound({ pps: '30k', syn_pps: '100' }));
  await addGroup('Narrow', ['198.51.100.0/28'], inbound({ pps: '20k' }));
  const narrow = await protection.explainAddress(siteId, '198.51.100.5');
  assert.equal(narrow.applying.group!.name, 'Narrow');
  assert.deepEqual([narrow.thresholds.inbound.pps, narrow.thresholds.inbound.syn_pps], [20_000, 10_000]);
  const wide = await protection.explainAddress(siteId, '198.51.100.17');
  assert.deepEqual(
    [wide.applying.prefix, wide.thresholds.inbound.pps, wide.thresholds.inbound.syn_pps],
    ['198.51.100.0/24', 30_000, 100],
  );
});

test('NET-1.4: the plan has the thresholds of every level put together, so that a sensor needs the longest prefix alone', async () => {
  await newSite();
  await setSite(inbound({ pps: '40k' }));
  await addGroup('Web', ['198.51.100.0/24', '2001:db8::/48'], inbound({ syn_pps: '8k' }));
  await addGroup('Same', ['203.0.113.0/24'], inbound({ syn_pps: '8k' }));
  await protection.setServerThresholds(
    ada,
    siteId,
    { clusterId: 7, serverId: 5 },
    inbound({ bps: 'off' }),
    0,
  );
  await protection.setServerThresholds(ada, siteId, { address: '192.0.2.1' }, inbound({ pps: '1k' }), 0);
  const plan = await detection();
  assert.deepEqual(plan.inbound, { ...thresholdDefaults.inbound, pps: 40_000 });
  assert.deepEqual(plan.outbound, thresholdDefaults.outbound);
  const short = plan.groups.map(({ prefixes, inbound: { pps, syn_pps, bps } }) => ({
    prefixes,
    values: [pps, syn_pps, bps],
  }));
  assert.deepEqual(short, [
    { prefixes: ['192.0.2.1/32'], values: [1000, 10_000, 900e6] },
    { prefixes: ['198.51.100.5/32'], values: [40_000, 8000, null] },
    {
      prefixes: ['198.51.100.0/24', '203.0.113.0/24', '2001:db8::/48'],
      values: [40_000, 8000, 900e6],
    },
  ]);
  for (const group of plan.groups)
    assert.deepEqual(Object.keys(group.inbound), Object.keys(plan.inbound), 'groups are whole');
});

test('NET-2.2.8: additional protected prefixes and local prefixes are two lists, and neither changes the other', async () => {
  await newSite();
  await world.sites.setLocalCidrs(systemActor, siteId, ['192.0.2.0/24']);
  await protection.setAdditionalCidrs(ada, siteId, ['203.0.113.0/24', ' 2001:DB8::/32 '], 0);
  assert.deepEqual((await detection()).additional_cidrs, ['2001:db8::/32', '203.0.113.0/24']);
  assert.deepEqual((await world.sites.find(siteId))!.localCidrs, ['192.0.2.0/24']);
  await world.sites.setLocalCidrs(systemActor, siteId, []);
  assert.deepEqual((await detection()).additional_cidrs, ['2001:db8::/32', '203.0.113.0/24']);
  await protection.setAdditionalCidrs(ada, siteId, [], await revisionOf());
  await world.sites.setLocalCidrs(systemActor, siteId, ['192.0.2.0/25']);
  assert.deepEqual((await detection()).additional_cidrs, []);
  const many = Array.from({ length: 129 }, (_, i) => `10.0.${i}.0/24`);
  await protection.setAdditionalCidrs(ada, siteId, many.slice(1), await revisionOf());
  const { additional_cidrs: refused } = await refusedFields(
    protection.setAdditionalCidrs(ada, siteId, many, await revisionOf()),
  );
  assert.match(refused!, /at most 128 prefixes, not 129/);
  assert.equal((await detection()).additional_cidrs.length, 128);
});

test('bad input is refused with what to write, names every wrong field, and changes nothing', async () => {
  await newSite();
  await addGroup('Web', ['198.51.100.0/24']);
  const fields = await refusedFields(
    setSite({
      inbound: { pps: '0', bps: '200T', syn_pps: 'many', udp_pps: '20,000' },
      outbound: { pps: '-5' },
    }),
  );
  assert.match(fields['inbound.pps']!, /at least 1/);
  assert.match(fields['inbound.bps']!, /No traffic reaches more than 100T bits/);
  assert.match(fields['inbound.syn_pps']!, /Write a number such as 20000/);
  assert.match(fields['outbound.pps']!, /Write a number/);
  assert.equal(Object.keys(fields).length, 4);
  const prefixes = async (texts: string[], name = 'Other') =>
    (await refusedFields(addGroup(name, texts))).prefixes;
  assert.match((await prefixes([]))!, /at least one prefix/);
  assert.match((await prefixes(['198.51.100.7/24']))!, /host bits are set: 198.51.100.0\/24\?/);
  assert.match((await prefixes(['300.1.1.1/24', '2001:db8::/129']))!, /300\.1\.1\.1\/24, 2001:db8::\/129/);
  assert.match((await prefixes(['0.0.0.0/0']))!, /every address/);
  assert.match((await prefixes(['198.51.100.0/24']))!, /already in the group "Web"/);
  assert.match((await refusedFields(addGroup(' ', ['192.0.2.0/24']))).name!, /1 to 80 characters/);
  assert.match((await refusedFields(addGroup('WEB', ['192.0.2.0/24']))).name!, /already has a group/);
  await assert.rejects(protection.setSiteThresholds(viewer, siteId, none, 0), (error) =>
    hasCode(error, 'operators.read_only'),
  );
  const { settings } = await protection.describeSite(siteId, []);
  assert.deepEqual([settings.site.revision, settings.groups.length], [0, 1]);
});

test('every change says in the audit trail who changed what, from what to what', async () => {
  await newSite();
  await setSite(inbound({ pps: '40k', bps: 'off' }));
  await setSite(inbound({ pps: '30k' }));
  await setSite(inbound({ pps: '30k' }));
  const id = (await addGroup('Web', ['198.51.100.0/24']))!;
  const { revision } = (await protection.describeSite(siteId, [])).settings.groups[0]!;
  const input = { name: 'Web', prefixes: ['198.51.100.0/25'], thresholds: inbound({ syn_pps: '1' }) };
  await protection.saveGroup(ada, siteId, id, input, revision);
  const [group] = (await protection.describeSite(siteId, [])).settings.groups;
  await protection.removeGroup(ada, siteId, id, group!.revision);
  const entries = await audited();
  assert.ok(entries.every((entry) => entry.name === 'ada@example.com'));
  assert.deepEqual(
    entries.map(({ operation, before, after: now }) => [operation, before, now]),
    [
      ['protection.set_thresholds', {}, { siteId, 'inbound bps': 'not judged', 'inbound pps': 40_000 }],
      [
        'protection.set_thresholds',
        { 'inbound bps': 'not judged', 'inbound pps': 40_000 },
        { siteId, 'inbound pps': 30_000 },
      ],
      ['protection_group.add', {}, { siteId, name: 'Web', prefixes: ['198.51.100.0/24'] }],
      [
        'protection_group.change',
        { prefixes: ['198.51.100.0/24'] },
        { siteId, prefixes: ['198.51.100.0/25'], 'inbound syn_pps': 1 },
      ],
      [
        'protection_group.remove',
        { siteId, name: 'Web', prefixes: ['198.51.100.0/25'], 'inbound syn_pps': 1 },
        null,
      ],
    ],
  );
});

test('a form that was opened before another change is refused and names who changed it', async () => {
  await newSite();
  await setSite(inbound({ pps: '40k' }));
  const opened = await revisionOf();
  await protection.setSiteThresholds(
    { ...ada, name: 'bob@example.com' },
    siteId,
    inbound({ pps: '20k' }),
    opened,
  );
  await assert.rejects(protection.setSiteThresholds(ada, siteId, inbound({ pps: '60k' }), opened), {
    code: 'protection.changed',
    message: /bob@example.com changed them after you opened the page. Nothing was saved/,
  });
  assert.equal((await detection()).inbound.pps, 20_000);
  const key = { address: '198.51.100.9' };
  await protection.setServerThresholds(ada, siteId, key, inbound({ pps: '1k' }), 0);
  const { revision } = (await protection.explainAddress(siteId, key.address)).applying.address!;
  await protection.setServerThresholds(ada, siteId, key, none, revision);
  assert.equal((await protection.explainAddress(siteId, key.address)).applying.address, null);
  await protection.setServerThresholds(ada, siteId, key, inbound({ pps: '2k' }), 0);
  await assert.rejects(
    protection.setServerThresholds(ada, siteId, key, inbound({ pps: '3k' }), revision),
    (error) => hasCode(error, 'protection.changed'),
    'an entry that was removed and added again is another one',
  );
});

test('settings with less effect than they seem to have are accepted with a warning that says what it means', async () => {
  await newSite();
  await protection.setAdditionalCidrs(ada, siteId, ['192.0.2.0/24', '10.0.0.0/8'], 0);
  await addGroup('Elsewhere', ['198.51.100.0/24', '203.0.113.0/24']);
  await addGroup('Added', ['192.0.2.128/25']);
  await setSite(inbound({ syn_pps: '60k' }));
  const { warnings } = await protection.describeSite(siteId, ['10.0.0.0/8']);
  assert.deepEqual(
    warnings.map(({ text }) => text.slice(0, 60)),
    [
      'Inbound: the threshold of TCP openings is above that of all packets, which'.slice(0, 60),
      '10.0.0.0/8 has more addresses than a sensor counts one by one'.slice(0, 60),
      '192.0.2.0/24 is outside the local prefixes of this site. Attacks'.slice(0, 60),
      'No protected address of this site is in 203.0.113.0/24 now, so'.slice(0, 60),
    ],
  );
});
