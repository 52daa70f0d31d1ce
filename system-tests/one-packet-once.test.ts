/**
 * The same packets in several captures of one host count once at the monitor: the same recording on one, two and three
 * interfaces gives the same totals there, to the byte.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld, createSpool, type MonitorWorld, testMinute } from '#monitor/testing/index.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { createMixedCapture } from '#sensor/testing/mixed-capture.ts';

const mixed = createMixedCapture(1500);
const interfaces = [
  ['eth0', 'uplink'],
  ['br0', 'bridge'],
  ['br1', 'bridge'],
] as const;

/** The recording as this interface's minutes. */
function play(name: string, role: 'uplink' | 'bridge'): TelemetryMinute[] {
  const capture = createCapture({
    name,
    role,
    linkType: 1,
    registrableDomain: (host) => host.split('.').slice(-2).join('.'),
    local: { prefixes: ['192.0.2.0/24', '2001:db8::/32'], addresses: [] },
  });
  capture.listeningSince(testMinute * 1000);
  for (let i = 0; i < mixed.frames; i += 1) {
    const ms = mixed.times[i]!;
    const seconds = testMinute + Math.floor(ms / 1000);
    const nanoseconds = Math.round((ms % 1000) * 1e6);
    capture.observe(
      mixed.bytes,
      mixed.offsets[i]!,
      mixed.captured[i]!,
      mixed.wire[i]!,
      seconds,
      nanoseconds,
      -1,
    );
  }
  return capture.closeMinutes((testMinute + 120) * 1000).map((report) => ({ ...report, role }));
}

async function totalsAt(world: MonitorWorld, siteId: number, addresses: readonly string[]): Promise<unknown> {
  const { traffic } = world;
  const fromMs = testMinute * 1000;
  const steps = await traffic.readSiteTraffic(siteId, fromMs, fromMs + 120_000, 60);
  const minutes = await Promise.all(
    addresses.map(async (address) => {
      const found = await traffic.readAddressMinutes(siteId, address, testMinute, testMinute + 120);
      // Each site has captures of its own.
      return found.map((minute) => ({ ...minute, captureId: null }));
    }),
  );
  const views = ['outbound', 'inbound', 'internal', 'all'] as const;
  const applications = await Promise.all(
    views.map((view) => world.applications.list(siteId, view, fromMs, fromMs + 120_000, 500)),
  );
  const used = await Promise.all(
    addresses.map((address) =>
      world.applications.readAddressApplications(siteId, address, testMinute, testMinute + 120),
    ),
  );
  return { steps, minutes, applications, used };
}

test('NET-2.2.5, NET-2.4.2: one recording on one, two and three interfaces gives the same totals at the monitor', async () => {
  const played = interfaces.map(([name, role]) => play(name, role));
  const addresses = [...new Set(played[0]!.flatMap((minute) => minute.hosts.filter((host) => host.isLocal)))]
    .map((host) => host.address)
    .slice(0, 40);
  assert.ok(addresses.length > 10);
  const seen: unknown[] = [];
  await using world = await createMonitorWorld();
  for (let count = 1; count <= interfaces.length; count += 1) {
    const site = await world.sites.create(systemActor, `Site with ${count}`);
    const { token } = await world.sensors.createToken(systemActor, site.id);
    const names = { host_name: `node-${count}`, node: `node-${count}`, sensor_version: '0.1.0' };
    const { credential } = (await world.sensors.enrol({ token, ...names }))!;
    const sensor = (await world.sensors.authenticate(credential))!;
    await world.send(createSpool().upload(played.slice(0, count).flat()), sensor);
    await world.inbox.drain();
    seen.push(await totalsAt(world, site.id, addresses));
  }
  assert.ok(JSON.stringify(seen[0]).includes('"rxBytes"'), 'there are totals');
  assert.deepEqual(seen[1], seen[0]);
  assert.deepEqual(seen[2], seen[0]);
});
