import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  canonicalAddress,
  formatPrefix,
  parseAddress,
  parsePrefix,
  prefixContains,
} from '#common/ip/index.ts';
import { type Metric, metrics, thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import {
  compileGroups,
  findApplying,
  indexGroups,
  type PlanGroup,
  resolveAddress,
  scopeGroups,
} from './compile-plan.ts';
import type { HostGroup, ServerSettings, Settings } from './settings.ts';
import { noChoices, resolveSite, type ThresholdChoices, valuesOf } from './thresholds.ts';

const revised = { revision: 1, changedAtMs: 0, changedBy: 'test' };
const site = { ...revised, thresholds: noChoices, additionalCidrs: [] };
const group = (id: number, prefixes: string[], thresholds: ThresholdChoices): HostGroup => ({
  ...revised,
  id,
  name: `group ${id}`,
  prefixes,
  thresholds,
});
const server = (id: number, of: Partial<ServerSettings>, thresholds: ThresholdChoices): ServerSettings => ({
  ...revised,
  id,
  clusterId: null,
  serverId: null,
  address: null,
  ...of,
  thresholds,
});

/** What a sensor takes: the group with the longest prefix, else the thresholds of the site. */
function asSensor(settings: Settings, groups: readonly PlanGroup[], address: string) {
  const bytes = parseAddress(address)!;
  const found = groups
    .flatMap((one) => one.prefixes.map((text) => ({ one, prefix: parsePrefix(text)! })))
    .filter(({ prefix }) => prefixContains(prefix, bytes))
    .sort((a, b) => b.prefix.length - a.prefix.length)[0];
  return found
    ? { inbound: found.one.inbound, outbound: found.one.outbound }
    : valuesOf(resolveSite(settings.site.thresholds));
}

/** A generator of numbers below `n` that repeats with its seed. */
function randomFrom(seed: number) {
  let state = seed;
  return (n: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

test('NET-1.4: a sensor that takes the longest prefix of the plan has the thresholds that the levels give, over random settings', () => {
  const random = randomFrom(7);
  const choices = (): ThresholdChoices => {
    const of = () => {
      const chosen: Partial<Record<Metric, number | null>> = {};
      for (const metric of metrics)
        if (random(3) === 0) chosen[metric] = random(5) === 0 ? null : 1 + random(4);
      return chosen;
    };
    return { inbound: of(), outbound: of() };
  };
  const addresses = Array.from({ length: 40 }, (_, i) =>
    i % 4 === 0
      ? canonicalAddress(`2001:db8:0:${i % 3}::${(i + 1).toString(16)}`)!
      : `10.0.${i % 3}.${i + 1}`,
  );
  const prefixesOf = (i: number) => [
    `10.0.${i % 3}.${(i * 16) % 256}/${28 - (i % 2) * 4}`.replace(/\.\d+\/24$/, '.0/24'),
    formatPrefix(parsePrefix(`2001:db8:0:${i % 3}::/${64 + (i % 2) * 16}`)!),
  ];
  for (let round = 0; round < 200; round += 1) {
    const taken = new Set<string>();
    const groups = Array.from({ length: random(8) }, (_, i) => {
      const prefixes = prefixesOf(random(12)).filter((prefix) => !taken.has(prefix) && taken.add(prefix));
      return group(i, prefixes, choices());
    }).filter((one) => one.prefixes.length > 0);
    const owned = addresses.map((address) => ({ clusterId: 7, serverId: random(6), address }));
    const servers = [
      ...Array.from({ length: random(4) }, (_, i) => server(i, { clusterId: 7, serverId: i }, choices())),
      server(10, { address: addresses[random(40)]! }, choices()),
    ];
    const settings: Settings = { site: { ...site, thresholds: choices() }, groups, servers };
    const set = new Set(servers.map((one) => one.serverId));
    const plan = compileGroups(
      settings,
      owned.filter((one) => set.has(one.serverId)),
    );
    for (const one of owned) {
      const applying = findApplying(indexGroups(groups), servers, one.address, [one]);
      assert.deepEqual(
        asSensor(settings, plan, one.address),
        valuesOf(resolveAddress(settings, applying)),
        `round ${round}, ${one.address}`,
      );
    }
    const mine = addresses.slice(0, 10);
    const scoped = scopeGroups(plan, mine, () => false);
    for (const address of mine)
      assert.deepEqual(asSensor(settings, scoped, address), asSensor(settings, plan, address), 'scoped');
  }
});

test('equal thresholds share a group of the plan, and a group has at most as many prefixes as the contract allows', () => {
  const own = Array.from({ length: 5000 }, (_, i) =>
    server(i, { address: `10.1.${i >> 8}.${i & 255}` }, { ...noChoices, inbound: { pps: 1 } }),
  );
  const groups = compileGroups({ site, groups: [], servers: own }, []);
  assert.deepEqual(
    groups.map((one) => one.prefixes.length),
    [4096, 904],
  );
  assert.equal(groups[0]!.inbound.pps, 1);
  assert.equal(groups[0]!.inbound.bps, thresholdDefaults.inbound.bps);
});

test('a sensor’s scope keeps the groups of its targets and those that overlap additional prefixes', () => {
  const thresholds = (pps: number): ThresholdChoices => ({ ...noChoices, inbound: { pps } });
  const groups = compileGroups(
    {
      site,
      groups: [
        group(1, ['10.0.0.0/16'], thresholds(1)),
        group(2, ['10.0.1.0/24'], thresholds(2)),
        group(3, ['10.9.0.0/16'], thresholds(3)),
        group(4, ['192.0.2.0/28'], thresholds(4)),
      ],
      servers: [],
    },
    [],
  );
  const scoped = scopeGroups(groups, ['10.0.1.7'], (prefix) => prefix.startsWith('192.0.2.'));
  assert.deepEqual(
    scoped.map((one) => one.prefixes),
    [['192.0.2.0/28'], ['10.0.1.0/24']],
  );
});
