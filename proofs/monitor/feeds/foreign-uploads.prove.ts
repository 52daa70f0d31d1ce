/**
 * Proof by hostile uploads (A sensor speaks for its node's servers): the credential of one host sends anything it likes of
 * two servers of other nodes, before and after their first import. None of it reaches operations, their devices or their
 * claims; what their own sensors told does, to the byte.
 */
import { randomUUID } from 'node:crypto';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import {
  compressUpload,
  encodeUpload,
  type TelemetryMinute,
  type TelemetryUsageRow,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { type Random, seededBelow } from '#monitor/facts/testing/random-uploads.ts';
import { createFeeds, minutes } from '#monitor/feeds/index.ts';
import {
  type OperationsStub,
  startOperationsStub,
} from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { minutesAgo } from '#monitor/testing/facts.ts';
import { captureMinute, host, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';

export const name = 'foreign-uploads';

export interface ForeignOptions {
  /** Hostile uploads. */
  n: number;
  seed: number;
  report(line: string): void;
}

const plants = ['verdicts_forgotten', 'node_named_by_host', 'inventory_ignored'] as const;
type Plant = (typeof plants)[number] | null;

export async function prove(options: ForeignOptions) {
  const { tried, delivered, offences } = await runUploads(options, null);
  for (const offence of offences.slice(0, 20)) options.report(offence);
  let caught = 0;
  for (const plant of plants) {
    const found = await runUploads({ ...options, n: 40 }, plant);
    options.report(`planted ${plant}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  return {
    claim: `${options.n} random uploads of one host's credential about servers of other nodes, before and after their import: ${delivered} delivered points have the bytes of their own sensors, 0 foreign bytes, no device, claim or conflict`,
    tried,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

const victims = [
  { vmId: 1, node: 'node-1', address: '203.0.113.11', mac: '00:1b:21:00:00:01' },
  { vmId: 2, node: 'node-2', address: '2001:db8::12', mac: '00:1b:21:00:00:02' },
];
const own = { vmId: 3, node: 'node-3', address: '203.0.113.13', mac: '00:1b:21:00:00:03' };
/** Uploads between two deliveries. */
const batchSize = 20;

export async function runUploads(
  { n, seed }: Pick<ForeignOptions, 'n' | 'seed'>,
  plant: Plant,
): Promise<{ tried: number; delivered: number; offences: string[] }> {
  await using operations = await startOperationsStub();
  await using server = await startMonitorServer({ SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1' });
  const random = seededBelow(seed);
  const scene = await createScene(server, operations, plant);
  const offences: string[] = [];
  let delivered = 0;
  for (let tried = 0; tried < n; tried += batchSize) {
    for (let i = 0; i < Math.min(batchSize, n - tried); i += 1) await scene.attack(random, tried > 0);
    await scene.tellMore(random);
    if (tried === 0) await scene.importAll();
    await scene.spoil();
    const { points, faults } = await scene.judge();
    delivered += points;
    offences.push(...faults);
  }
  return { tried: n, delivered, offences };
}

async function createScene(server: MonitorServer, operations: OperationsStub, plant: Plant) {
  const { monitor, siteId, database } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  const enrol = async (node: string) => {
    const { token } = await monitor.sensors.createToken(systemActor, siteId, {
      node: { name: node, clusterId: 7 },
    });
    const said = { token, host_name: node, node: 'node-1', sensor_version: '0.1.0' };
    return (await monitor.sensors.authenticate((await monitor.sensors.enrol(said))!.credential))!;
  };
  const senders = new Map<string, Awaited<ReturnType<typeof enrol>>>();
  for (const { node } of [...victims, own]) senders.set(node, await enrol(node));
  const spoolId = randomUUID();
  let sequence = 0;
  const send = async (node: string, minutes: TelemetryMinute[], inventory?: object) => {
    sequence += 1;
    const upload = { spoolId, sequence, sensorVersion: '0.1.0', minutes, gaps: [], ...(inventory ?? {}) };
    await monitor.inbox.receive(senders.get(node)!, compressUpload(encodeUpload(upload)), 'zstd');
  };
  operations.vms = [...victims, own].map(({ vmId, node, address, mac }) => ({
    id: vmId,
    cluster_id: 7,
    node,
    name: `server-${vmId}`,
    state: 'running',
    updated_at: new Date().toISOString(),
    interfaces: [{ id: vmId, mac_address: mac, bridge: 'br0', vlan: null, addresses: [address] }],
  }));
  await monitor.connection.save(systemActor, {
    baseUrl: operations.url,
    token: operations.token,
    isEnabled: true,
  });

  // The truth, minute by minute.
  const truth = new Map<string, number>();
  const tell = async ({ node, address, mac }: (typeof victims)[number], minute: number) => {
    const bytes = 1000 + (minute % 3600);
    truth.set(`${address} ${minute}`, bytes);
    const usage = [usageRow({ client: address, clientBytes: 0, serverBytes: bytes, name: 'honest.example' })];
    const hosts = [host(address, bytes, 0, `br0|${mac}`)];
    await send(node, [captureMinute({ minute, capture: 'br0', role: 'bridge', hosts, usage })]);
  };
  for (const [i, victim] of victims.entries())
    for (let ago = 3; ago < 50; ago += 4 + i) await tell(victim, minutesAgo(ago));

  return {
    /** Before the import the MAC has no known server, so it names none then. */
    async attack(random: Random, namesMacs: boolean) {
      const minutes = new Map<string, TelemetryMinute>();
      for (let i = 0; i <= random(4); i += 1) {
        const minute = hostileMinute(random);
        if (!namesMacs) for (const one of minute.hosts) one.deviceKey = '';
        minutes.set(`${minute.minute} ${minute.capture}`, minute);
      }
      const inventory = namesMacs && random(3) === 0 ? { inventory: hostileInventory(random) } : {};
      await send(own.node, [...minutes.values()], inventory);
    },
    /** Their own sensors go on telling, also of minutes that the host has spoken of by then. */
    async tellMore(random: Random) {
      for (const victim of victims) {
        const minute = minutesAgo(2 + random(50));
        if (!truth.has(`${victim.address} ${minute}`)) await tell(victim, minute);
      }
    },
    async importAll() {
      await monitor.inbox.drain();
      const { outcome } = await monitor.inventory.syncNow(systemActor);
      if (outcome !== 'imported') throw new Error(`the inventory was not imported: ${outcome}`);
    },
    /** What a planted bug does. */
    async spoil() {
      await monitor.inbox.drain();
      if (plant === 'verdicts_forgotten') {
        for (const table of ['host_minutes', 'application_facts'])
          await database.pool.query(`update ${table} set is_foreign = false`);
      }
      if (plant === 'node_named_by_host') await database.pool.query(`update sensors set node = 'node-1'`);
      if (plant === 'inventory_ignored') await database.pool.query('truncate vm_placements');
    },
    async judge() {
      operations.posted.length = 0;
      // One visit sends an hour, so that every minute of the host is among those that are judged.
      const assignedAt = new Date(minutesAgo(58) * 1000).toISOString();
      operations.targets = victims.map(({ vmId, address }) => ({
        ...{ id: vmId, billing_account_id: vmId, virtual_machine_id: vmId, cluster_id: 7 },
        ...{ address, assigned_at: assignedAt },
      }));
      await database.pool.query('truncate feed_cursors, allocation_targets, feed_states, leases');
      const { connection, sites, traffic, applications, live, incidents, scans, vulnerabilities } = monitor;
      // A new one lists the allocations again, which one that goes on does every 30 s.
      const feeds = createFeeds({
        feeds: [minutes],
        cadences: { [minutes.name]: { isOn: true, intervalSeconds: 5 } },
        ...{ db: () => database.db, connection, sites, traffic, applications, live, clock: systemClock },
        ...{ incidents, scans, vulnerabilities, reporter: silentReporter, documentationIsGlobal: true },
      });
      await feeds.find(minutes.name).runOnce();
      const faults: string[] = [];
      let points = 0;
      for (const { address, series } of operations.posted.flatMap((request) => request.targets)) {
        for (const point of series) {
          points += 1;
          faults.push(...judgePoint(address, point, truth));
        }
      }
      if (points === 0) faults.push('nothing was delivered');
      for (const { address, mac } of victims) {
        const owners = await monitor.devices.listOwners(siteId, { address, segment: '' }, 10);
        for (const owner of owners) if (owner.mac !== mac) faults.push(`${owner.mac} owns ${address}`);
      }
      const events = await monitor.events.list(siteId, 200);
      for (const { kind, details } of events)
        if (victims.some(({ address }) => address === details.address)) faults.push(`${kind} of a server`);
      return { points, faults };
    },
  };
}

/** A point says what its own sensor said; between its minutes it may say nothing or zero. */
function judgePoint(address: string, point: TelemetryPoint, truth: ReadonlyMap<string, number>): string[] {
  const at = `${address} ${Date.parse(point.timestamp) / 1000}`;
  const expected = truth.get(at) ?? 0;
  const bytes = Math.round((point.inbound_bps! * 60) / 8);
  const faults: string[] = [];
  if (bytes !== expected) faults.push(`${at}: ${bytes} bytes in instead of ${expected}`);
  if (point.outbound_bps !== 0) faults.push(`${at}: ${point.outbound_bps} bit/s out`);
  if (point.coverage !== 1) faults.push(`${at}: coverage ${point.coverage}`);
  for (const application of point.applications)
    if (application.name !== 'honest.example') faults.push(`${at}: ${application.name}`);
  return faults;
}

function hostileMinute(random: Random): TelemetryMinute {
  const pick = <T>(all: readonly T[]): T => all[random(all.length)]!;
  const minute = minutesAgo(2 + random(50));
  const addresses = [...victims.map((victim) => victim.address), own.address, '203.0.113.99'];
  const macs = [...victims.map((victim) => victim.mac), own.mac, '00:1b:21:00:00:99'];
  const bytes = () => pick([0, 1, 1500, 1_000_000, 50_000_000_000]);
  const usage = Array.from({ length: random(6) }, (): TelemetryUsageRow => {
    const [client, server] = [pick([...addresses, '198.51.100.7']), pick([...addresses, '198.51.100.7'])];
    return usageRow({
      client,
      server,
      direction: pick(['outbound', 'inbound', 'internal', 'transit'] as const),
      serverPort: pick([22, 443, 50_000]),
      name: pick(['made-up.example', '<b>made up</b>', 'honest.example.made-up']),
      evidence: pick(['tls_sni', 'http_host', 'dns', 'none'] as const),
      clientBytes: bytes(),
      serverBytes: bytes(),
      clientLastSentMs: minute * 1000 + 1,
      serverLastSentMs: minute * 1000 + 1,
    });
  });
  return captureMinute({
    minute,
    capture: pick(['br0', 'eth0', 'br1']),
    role: pick(['uplink', 'bridge'] as const),
    totals: { ipPackets: 100_000_000, ipBytes: 200_000_000_000 },
    hosts: addresses
      .filter(() => random(2) === 0)
      .map((address) => ({
        ...host(address, bytes(), bytes(), pick(['', `${pick(['br0', 'br1'])}|${pick(macs)}`])),
        packets: 50_000_000,
      })),
    usage: usage.map((row) => ({ ...row, packets: 50_000_000 })),
  });
}

function hostileInventory(random: Random) {
  const { address, mac } = victims[random(victims.length)]!;
  const plain = { index: 1, kind: '', isUp: true, mtu: 1500, master: '', parent: '', vlan: 0, addresses: [] };
  return {
    observedAtMs: minutesAgo(1) * 1000,
    interfaces: random(2) === 0 ? [{ ...plain, name: 'eth0', mac }] : [],
    neighbours: [{ segment: 'br0', mac, address, isRouter: random(2) === 0 }],
    interfacesLeftOut: 0,
    neighboursLeftOut: 0,
  };
}
