import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TelemetryMinute, TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';
import { firstMinute, sampleMinute } from '#sensor/testing/sample-minutes.ts';
import type { LocalWindow } from './merge.ts';
import { UplinkSettler } from './settle-uplinks.ts';

const victim = '203.0.113.11';
const other = '203.0.113.10';
const remote = '198.51.100.9';
const owners = [
  { address: victim, macs: ['52:54:00:00:00:02'] },
  { address: other, macs: ['52:54:00:00:00:01'] },
];

const row = (
  client: string,
  server: string,
  direction: TelemetryUsageRow['direction'],
  bytes: number,
): TelemetryUsageRow => ({
  ...{ client, server, protocol: 6, serverPort: 443, direction, name: 'example.com', evidence: 'tls_sni' },
  ...{ clientBytes: bytes, serverBytes: 0, packets: 1, clientLastSentMs: 0, serverLastSentMs: 0 },
});
const host = (address: string, txBytes: number) => ({
  ...{ address, isLocal: true, rxBytes: 0, txBytes, packets: 1, deviceKey: '' },
});

function uplink(minute: number, name = 'eth0'): TelemetryMinute {
  return {
    ...sampleMinute(minute, 5000),
    capture: name,
    hosts: [host(victim, 4000), host(other, 1000)],
    usage: [row(victim, remote, 'outbound', 4000), row(other, remote, 'outbound', 1000)],
    detector: {
      ...{ ticks: 60, epochId: '', overflowed: 0, incidentsLost: 0, mergedFrames: 0 },
      rows: (['inbound', 'outbound'] as const).map((direction) => ({
        ...{ address: victim, direction, oneSecond: [], tenSeconds: [], attackBytes: 0, attackPackets: 0 },
      })),
    },
  };
}

function bridge(minute: number, spoofedBytes: number): TelemetryMinute {
  const spoofed = { deviceKey: 'br0|52:54:00:00:00:01', address: victim, bytes: spoofedBytes, packets: 3 };
  return {
    ...sampleMinute(minute, 6000),
    capture: 'br0',
    role: 'bridge',
    hosts: [host(victim, 300), host(other, 1500)],
    usage: [
      row(victim, remote, 'outbound', 200),
      row(victim, other, 'internal', 100),
      row(other, remote, 'outbound', 1000),
      row(other, victim, 'inbound', 7),
    ],
    ...(spoofedBytes > 0 ? { spoofed: [spoofed] } : {}),
  };
}

const settler = (onWindow: (window: LocalWindow) => void = () => {}) => {
  const made = new UplinkSettler({ bridges: () => ['br0'], onWindow });
  made.follow({ owners });
  return made;
};
const usageOf = ({ usage }: TelemetryMinute) => usage.map((one) => [one.client, one.clientBytes]);

test('NET-2.4.2: where a bridge saw an address spoofed, the uplink reports what the bridge saw of its owner', () => {
  const one = settler();
  const settled = one.settle([uplink(firstMinute), uplink(firstMinute, 'eth1'), bridge(firstMinute, 3800)]);
  const [first, second, seen] = settled as [TelemetryMinute, TelemetryMinute, TelemetryMinute];
  assert.deepEqual(first.hosts, [host(other, 1000)]);
  assert.deepEqual(usageOf(first), [
    [other, 1000],
    [victim, 200],
  ]);
  assert.deepEqual(usageOf(second), [[other, 1000]], 'once over all uplinks');
  assert.deepEqual(first.totals, uplink(firstMinute).totals, 'the capture’s totals stay');
  assert.deepEqual(
    first.detector!.rows.map(({ direction }) => direction),
    ['inbound'],
  );
  assert.deepEqual(seen, bridge(firstMinute, 3800));
  // A packet that the bridge saw at the end of a minute may pass the uplink in the next.
  const [next] = one.settle([uplink(firstMinute + 60), bridge(firstMinute + 60, 0)]);
  assert.deepEqual(next!.hosts, [host(other, 1000)]);
  const later = [uplink(firstMinute + 120), bridge(firstMinute + 120, 0)];
  assert.deepEqual(one.settle(later), later);
});

test('an uplink without a bridge beside it reports all that it saw, because nothing else is known', () => {
  const one = settler();
  const alone = [uplink(firstMinute)];
  assert.deepEqual(one.settle(alone), alone);
  one.settle([bridge(firstMinute, 5)]);
  const late = one.settle([uplink(firstMinute)])[0]!;
  assert.deepEqual(late.hosts, [host(other, 1000)], 'late, after its bridge');
  assert.deepEqual(usageOf(late), [[other, 1000]]);
  const next = [uplink(firstMinute + 60)];
  assert.deepEqual(one.settle(next), next);
});

test('NET-2.5: a live window of an uplink waits for the bridges’, and is without addresses that these saw spoofed', () => {
  const passed: LocalWindow[] = [];
  const one = settler((window) => passed.push(window));
  const window = (role: 'uplink' | 'bridge', seconds: number, spoofed: string[] = []): LocalWindow => ({
    ...{ capture: role === 'uplink' ? 'eth0' : 'br0', role, observedMs: 10_000 },
    startedAtMs: (firstMinute + seconds) * 1000,
    totals: sampleMinute(firstMinute, 1).totals,
    hosts: [victim, other].map((address) => ({ address, rxBytes: 1, txBytes: 2, packets: 3 })),
    ...{ hostsLeftOut: 0, applications: [], spoofed },
  });
  const seen = () => passed.splice(0).map(({ role, hosts }) => [role, hosts.length]);
  one.offer(window('uplink', 0));
  assert.deepEqual(seen(), []);
  one.offer(window('bridge', 0, [victim]));
  assert.deepEqual(seen(), [
    ['bridge', 2],
    ['uplink', 1],
  ]);
  one.offer(window('uplink', 200));
  for (let tick = 0; tick < 4; tick += 1) one.tick();
  assert.deepEqual(seen(), []);
  one.tick();
  assert.deepEqual(
    seen(),
    [['uplink', 2]],
    'after some ticks it goes without them, and no address is left out any more',
  );
  one.follow({ owners: [] });
  one.offer(window('uplink', 210));
  assert.deepEqual(seen(), [['uplink', 2]], 'without owners nothing waits');
});
