import assert from 'node:assert/strict';
import { test } from 'node:test';
import { liveHostsMax } from '#contracts/sensor-api/live.ts';
import { type TelemetryUsageRow, usageRowsMax } from '#contracts/sensor-api/telemetry.ts';
import { emptyTotals } from '#sensor/capture/capture.ts';
import type { HostCounters, MinuteReport, UsageRow, WindowReport } from '#sensor/capture/index.ts';
import { firstMinute, sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { cutWindow, joinParts, mergeMembers, mergeWindows } from './merge.ts';

const noMacs: ReadonlySet<string> = new Set();
const guest = '52:54:00:00:00:01';
const other = '52:54:00:00:00:02';

const totals = {
  ...emptyTotals(),
  ...{ packets: 10, ipPackets: 10, ipBytes: 1000, parserDropped: 1, kernelDropped: 2 },
};

function counters(address: string, mac: string | null, isContested = false): HostCounters {
  const deviceKey = mac === null ? '' : `br0|${mac}`;
  return { address, isLocal: true, rxBytes: 100, txBytes: 10, packets: 3, deviceKey, isContested };
}

function member(hosts: HostCounters[], routerMacs: string[] = [], usage: UsageRow[] = []): MinuteReport {
  return {
    minute: firstMinute,
    capture: 'br0',
    role: 'bridge',
    observedMs: 60_000,
    totals,
    hosts,
    routerMacs,
    usage,
    spoofed: [],
  };
}

function usageRow(index: number, bytes: number, packets = 1): TelemetryUsageRow {
  return {
    client: '192.0.2.1',
    server: `2001:db8::${index.toString(16)}`,
    protocol: 17,
    serverPort: 443,
    direction: 'outbound',
    name: 'example.com',
    evidence: 'dns',
    clientBytes: bytes,
    serverBytes: 0,
    packets,
    clientLastSentMs: firstMinute * 1000 + index,
    serverLastSentMs: 0,
  };
}

const keyOf = (members: MinuteReport[], foreign = noMacs) =>
  mergeMembers(members, 'bridge', foreign).hosts[0]!.deviceKey;

test('NET-2.2.9: over fanout members an owner has no contradiction and is neither a router nor this host', () => {
  const ip = '192.0.2.1';
  const seen = counters(ip, guest);
  assert.equal(
    keyOf([member([seen]), member([counters(ip, null)])]),
    `br0|${guest}`,
    'one member did not see it send',
  );
  assert.equal(keyOf([member([seen]), member([counters(ip, other)])]), '', 'two MACs, one at each member');
  assert.equal(keyOf([member([seen]), member([counters(ip, null, true)])]), '', 'one member saw two MACs');
  assert.equal(keyOf([member([seen]), member([], [guest])]), '', 'one member saw it forward');
  assert.equal(keyOf([member([seen])], new Set([guest])), '', "the host's own MAC");
  const remote = { ...counters('203.0.113.9', null), isLocal: false };
  assert.deepEqual(mergeMembers([member([remote])], 'bridge', noMacs).hosts, [], 'remote addresses are kept');
});

test('NET-2.2.9: parts of a minute with different or unknown owners clear the owner', () => {
  const part = (deviceKey: string) => {
    const minute = sampleMinute(firstMinute, 50, 20_000);
    return { ...minute, hosts: minute.hosts.map((host) => ({ ...host, deviceKey })) };
  };
  const join = (a: string, b: string) => joinParts(part(a), part(b));
  assert.equal(join('br0|a', 'br0|a').hosts[0]!.deviceKey, 'br0|a');
  assert.equal(join('br0|a', 'br0|b').hosts[0]!.deviceKey, '');
  assert.equal(join('br0|a', '').hosts[0]!.deviceKey, '');
  const whole = joinParts(part(''), { ...part(''), observedMs: 45_000 });
  assert.deepEqual([whole.observedMs, whole.totals.ipBytes, whole.hosts[0]!.rxBytes], [59_999, 100, 100]);
});

test('NET-8.6: rows of one key add, the 4,096 largest stay, and packets of the rest are counted', () => {
  const rows = Array.from({ length: usageRowsMax }, (_, i) => usageRow(i, 1000 + i, 2));
  const more = [usageRow(5, 7, 1), usageRow(usageRowsMax, 1, 3)];
  const one = { ...member([]), totals: { ...totals, packets: 9000, ipPackets: 9000 } };
  const merged = mergeMembers(
    [
      { ...one, usage: rows },
      { ...one, usage: more },
    ],
    'bridge',
    noMacs,
  );
  assert.equal(merged.usage.length, usageRowsMax);
  const summed = merged.usage.find((row) => row.server === '2001:db8::5')!;
  assert.deepEqual([summed.clientBytes, summed.packets], [1012, 3]);
  assert.equal(merged.totals.detailTruncated, 3);
  assert.deepEqual([merged.totals.packets, merged.totals.kernelDropped], [18_000, 4]);
});

test('NET-8: a live window has at most 1,000 host rows, allocations first, then the busiest; the rest is counted', () => {
  const hosts = Array.from({ length: 1500 }, (_, i) => ({
    address: `10.0.${i >> 8}.${i & 255}`,
    rxBytes: 10 + i,
    txBytes: 1,
    packets: 1,
  }));
  const window = (part: typeof hosts): WindowReport => ({
    startedAtMs: firstMinute * 1000,
    observedMs: 10_000,
    totals,
    hosts: part,
    applications: [{ name: 'example.com', protocol: 6, serverPort: 443, clientBytes: 5, serverBytes: 6 }],
    spoofed: [],
  });
  const members = [window(hosts), window(hosts.slice(0, 3))];
  const isProtected = (address: string) => address === '10.0.0.1';
  const merged = cutWindow(mergeWindows(members, { name: 'br0', role: 'bridge' }, isProtected));
  assert.equal(merged.hosts.length, liveHostsMax);
  assert.equal(merged.hostsLeftOut, 500);
  assert.deepEqual(merged.hosts[0], { address: '10.0.0.1', rxBytes: 22, txBytes: 2, packets: 2 });
  assert.equal(merged.hosts[1]!.address, hosts.at(-1)!.address);
  assert.equal(merged.totals.parserDropped, 2, 'NET-2.2.6: parser loss is on live totals too');
  assert.equal(merged.applications[0]!.serverBytes, 12);
});

test('own scans add over members and parts, and an address that one of them scanned keeps its part', () => {
  const ip = '192.0.2.1';
  const scan = (rxBytes: number): HostCounters => ({
    ...counters(ip, guest),
    ownScan: { rxBytes, txBytes: 1, packets: 2 },
  });
  const merged = mergeMembers(
    [member([counters(ip, guest)]), member([scan(30)]), member([scan(7)])],
    'bridge',
    noMacs,
  );
  assert.deepEqual(merged.hosts[0]!.ownScan, { rxBytes: 37, txBytes: 2, packets: 4 });
  assert.equal(merged.hosts[0]!.rxBytes, 300);
  const joined = joinParts(merged, mergeMembers([member([scan(5)])], 'bridge', noMacs));
  assert.deepEqual(joined.hosts[0]!.ownScan, { rxBytes: 42, txBytes: 3, packets: 6 });
  assert.deepEqual(
    merged.hosts[0]!.ownScan,
    { rxBytes: 37, txBytes: 2, packets: 4 },
    'the parts stay as they were',
  );
});

test('spoofed traffic adds over members and parts; what a router or this host passes on is none, unless its MAC is a server’s', () => {
  const row = (mac: string, bytes: number) => ({
    ...{ deviceKey: `br0|${mac}`, address: '192.0.2.1', bytes, packets: 1 },
  });
  const router = '00:00:5e:00:01:01';
  const members = [
    { ...member([], [router]), spoofed: [row(guest, 100), row(router, 7)] },
    { ...member([]), spoofed: [row(guest, 50), row(other, 9)] },
  ];
  const merged = mergeMembers(members, 'bridge', new Set([other]), new Set([other]));
  assert.deepEqual(merged.spoofed, [{ ...row(guest, 150), packets: 2 }, row(other, 9)]);
  const quiet = mergeMembers([member([])], 'bridge', noMacs);
  assert.equal('spoofed' in quiet, false);
  assert.deepEqual(joinParts(quiet, merged).spoofed, merged.spoofed);
  const many = Array.from({ length: 100 }, (_, i) => row(`06:00:00:00:00:${10 + i}`, 1000 - i));
  const { spoofed } = mergeMembers([{ ...member([]), spoofed: many }], 'bridge', noMacs);
  assert.equal(spoofed!.length, 64);
  assert.equal(
    spoofed!.reduce((sum, one) => sum + one.bytes, 0),
    many.reduce((sum, one) => sum + one.bytes, 0),
  );
});
