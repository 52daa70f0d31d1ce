/**
 * Two guests of a lab send at the same time by random schedules, one of them also from the other's addresses. What the sensor
 * counts, and what the monitor then knows of each address, has to equal nftables' counters of the address at its own guest's port.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatAddress, parseAddress } from '#common/ip/index.ts';
import { seededRandom } from '#common/random/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { SensorPlan } from '#contracts/sensor-api/http.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { createLab, type Lab } from '#lab/index.ts';
import { addressRecords } from '#lab/traffic/internet-plan.ts';
import { nameGuestLink } from '#lab/world/name-world.ts';
import { links, macs } from '#lab/world/networks.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld, createSpool } from '#monitor/testing/index.ts';
import { ethernet, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { until } from '#service-kit/testing/until.ts';

const sensorFile = fileURLToPath(new URL('./spoofing-sensor.ts', import.meta.url));
const senderFile = fileURLToPath(new URL('../../lab/testing/send-frames.ts', import.meta.url));
const framesOfSchedule = 60;
const patientMs = 120_000;

const guests = [
  { name: 'vm-1', mac: '52:54:00:5e:00:11', addresses: ['203.0.113.11', '2001:db8:113::11'] },
  { name: 'vm-2', mac: '52:54:00:5e:00:12', addresses: ['203.0.113.12', '2001:db8:113::12'] },
] as const;
type Guest = (typeof guests)[number];

export interface SpoofingResult {
  faults: string[];
  /** Bytes that the first guest sent from addresses of the second. */
  spoofedBytes: number;
}

/** Without `guarded` the plan names no owners, so that the comparison has to fail. */
export async function proveSpoofing({
  n,
  seed,
  guarded = true,
}: {
  n: number;
  seed: number;
  guarded?: boolean;
}): Promise<SpoofingResult> {
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-spoofing-'));
  const lab = createLab({ dataDir, reporter: silentReporter, outboundPerSecond: 0, inboundPerSecond: 0 });
  await using world = await createMonitorWorld();
  await lab.start();
  try {
    for (const { name, mac, addresses } of guests)
      await lab.put({ name, mac, addresses: addresses.map((address) => ({ address })) });
    await fixNeighbours(lab);
    await countPorts(lab);
    const plan = await planOf(world);
    const sensor = spawnSensor(lab, guarded ? plan : { ...plan, owners: [] });
    await sensor.listening;
    await sendAll(lab, dataDir, n, seed);
    const counted = await readQuietPorts(lab);
    const minutes = await sensor.end();
    await world.apply(createSpool().upload(minutes));
    return await compare(world, minutes, counted);
  } finally {
    await lab.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The plan as the monitor makes it of its inventory. */
async function planOf(world: Awaited<ReturnType<typeof createMonitorWorld>>): Promise<SensorPlan> {
  const { sites, siteId, spoofing, database } = world;
  await sites.mapCluster(systemActor, 7, siteId);
  for (const [i, { mac, addresses }] of guests.entries())
    await database.pool.query(
      `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
       select 7, $1, 'node-1', $2, 'br0', address, true, '-infinity' from unnest($3::inet[]) address`,
      [i + 1, mac, addresses],
    );
  const fields = await spoofing.section.read({ siteId, node: { name: 'node-1', clusterId: null } });
  return {
    ...{
      plan_version: 1,
      application_usage_version: 1,
      application_protocol_version: 1,
      protected_targets: [],
    },
    ...{ local_cidrs: ['203.0.113.0/24', '2001:db8:113::/64'], ...fields },
  };
}

/** So that no packet of address resolution comes after the last one of a schedule. */
async function fixNeighbours(lab: Lab): Promise<void> {
  for (const guest of guests)
    for (const other of guests)
      for (const address of other === guest ? [] : other.addresses) {
        const line = [
          'neigh',
          'replace',
          address,
          'lladdr',
          other.mac,
          'dev',
          links.guest,
          'nud',
          'permanent',
        ];
        await lab.execInGuest(guest.name, ['ip', ...line]);
      }
}

/** Counts the addresses of each guest at its port: what it sent from them, and what it was given for them. */
async function countPorts(lab: Lab): Promise<void> {
  const rules = guests.flatMap(({ name, addresses }) => {
    const link = nameGuestLink(name);
    const lines = addresses.flatMap((address, family) => {
      const ip = family === 0 ? 'ip' : 'ip6';
      return [
        `add counter netdev ports ${link}-tx${family}`,
        `add counter netdev ports ${link}-rx${family}`,
        `add counter netdev ports ${link}-wan${family}`,
        `add rule netdev ports ${link}-in ${ip} saddr ${address} counter name ${link}-tx${family}`,
        `add rule netdev ports ${link}-in ${ip} saddr ${address} ${ip} daddr ${internetOf(family)} counter name ${link}-wan${family}`,
        `add rule netdev ports ${link}-out ${ip} daddr ${address} counter name ${link}-rx${family}`,
      ];
    });
    return [
      `add chain netdev ports ${link}-in { type filter hook ingress device ${link} priority -400; }`,
      `add chain netdev ports ${link}-out { type filter hook egress device ${link} priority 400; }`,
      ...lines,
    ];
  });
  await lab.execInHypervisor(['nft', ['add table netdev ports', ...rules].join('\n')]);
}

interface Counted {
  rxBytes: number;
  txBytes: number;
  /** Of those that it sent, to the Internet. */
  wanBytes: number;
}

async function readPorts(lab: Lab): Promise<Map<string, Counted>> {
  const json = await lab.execInHypervisor(['nft', '-j', 'list', 'counters', 'table', 'netdev', 'ports']);
  const { nftables } = JSON.parse(json) as {
    nftables: { counter?: { name: string; bytes: number; packets: number } }[];
  };
  const named = new Map(nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter]] : [])));
  return new Map(
    guests.flatMap(({ name, addresses }) =>
      addresses.map((address, family): [string, Counted] => {
        const sent = named.get(`${nameGuestLink(name)}-tx${family}`)!;
        const given = named.get(`${nameGuestLink(name)}-rx${family}`)!;
        // At egress the Ethernet header is still on.
        const wanBytes = named.get(`${nameGuestLink(name)}-wan${family}`)!.bytes;
        return [address, { txBytes: sent.bytes, rxBytes: given.bytes - 14 * given.packets, wanBytes }];
      }),
    ),
  );
}

/** The counters when nothing comes any more. */
async function readQuietPorts(lab: Lab): Promise<Map<string, Counted>> {
  let last = '';
  let same = 0;
  let counted = new Map<string, Counted>();
  await until('the ports are quiet', patientMs, async () => {
    counted = await readPorts(lab);
    const text = JSON.stringify([...counted]);
    same = text === last ? same + 1 : 0;
    last = text;
    return same >= 5;
  });
  return counted;
}

function spawnSensor(lab: Lab, plan: SensorPlan) {
  const [program, ...args] = lab.inHypervisor([
    ...[process.execPath, '--disable-warning=ExperimentalWarning', sensorFile],
    ...[JSON.stringify(plan), links.uplink, links.bridge],
  ]) as [string, ...string[]];
  const child: ChildProcessWithoutNullStreams = spawn(program, args, { stdio: 'pipe' });
  let said = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  return {
    listening: until(
      'the sensor listens',
      patientMs,
      () => said.startsWith('listening'),
      () => child.exitCode !== null && complaint,
    ),
    async end(): Promise<TelemetryMinute[]> {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'close');
      if (child.exitCode !== 0) throw new Error(`the sensor ended with ${child.exitCode}: ${complaint}`);
      return JSON.parse(said.slice(said.indexOf('\n') + 1)) as TelemetryMinute[];
    },
  };
}

async function sendAll(lab: Lab, dataDir: string, n: number, seed: number): Promise<void> {
  const random = seededRandom(seed);
  await Promise.all(
    guests.map(async (guest, i) => {
      const length = (n * framesOfSchedule) / (i === 0 ? 1 : 3);
      const frames = Array.from({ length }, () => randomFrame(random, guest));
      const file = join(dataDir, `frames-${i}`);
      writeFileSync(file, frames.map((frame) => Buffer.from(frame).toString('hex')).join('\n'));
      await lab.execInGuest(guest.name, [process.execPath, senderFile, links.guest, file]);
    }),
  );
}

/**
 * A packet of the guest, mostly to the Internet: there the uplink sees most of what the first sends, of which three quarters are from
 * addresses of the second.
 */
function randomFrame(random: () => number, guest: Guest): Uint8Array {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;
  const family = random() < 0.5 ? 0 : 1;
  const [first, second] = guests;
  const from = guest === first && random() < 0.75 ? second : guest;
  const internet = internetOf(family);
  const other = guest === first ? second : first;
  const target = random() < 0.8 ? internet : other.addresses[family];
  const ends = {
    from: from.addresses[family],
    to: target,
    fromPort: pick([40_000, 40_001]),
    toPort: pick([123, 443]),
  };
  const data = new Uint8Array(Math.floor(random() * 1000));
  const packet = random() < 0.3 ? tcp(ends, pick([Tcp.syn, Tcp.ack, Tcp.reset]), 1, data) : udp(ends, data);
  if (family === 0) sumHeader(packet);
  const frame = ethernet(packet, { source: guest.mac });
  const receiver = target === internet ? macs.bridge : other.mac;
  frame.set(Buffer.from(receiver.replaceAll(':', ''), 'hex'), 0);
  return frame;
}

function internetOf(family: number): string {
  const site = addressRecords.get('time.example.org')!;
  return family === 0 ? site.ipv4 : site.ipv6;
}

/** A router forwards no IPv4 packet whose header has a wrong sum. */
function sumHeader(packet: Uint8Array): void {
  let sum = 0;
  for (let at = 0; at < 20; at += 2) sum += at === 10 ? 0 : (packet[at]! << 8) | packet[at + 1]!;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  packet[10] = (~sum >> 8) & 255;
  packet[11] = ~sum & 255;
}

async function compare(
  world: Awaited<ReturnType<typeof createMonitorWorld>>,
  minutes: readonly TelemetryMinute[],
  counted: ReadonlyMap<string, Counted>,
): Promise<SpoofingResult> {
  const faults: string[] = [];
  const lost = minutes.reduce((sum, { totals }) => sum + totals.kernelDropped, 0);
  if (lost > 0) faults.push(`the captures lost ${lost} packets`);
  const firstMinute = Math.min(...minutes.map(({ minute }) => minute));
  const lastMinute = Math.max(...minutes.map(({ minute }) => minute));
  for (const [address, { rxBytes, txBytes, wanBytes }] of counted) {
    const found = await world.traffic.readAddressMinutes(world.siteId, address, firstMinute, lastMinute + 60);
    let [received, sent] = [0, 0];
    for (const one of found) {
      if (one.isGap) continue;
      received += one.rxBytes;
      sent += one.txBytes;
    }
    if (received !== rxBytes || sent !== txBytes)
      faults.push(
        `${address}: monitor ${received} and ${sent}, port ${rxBytes} and ${txBytes} bytes in and out`,
      );
    if (txBytes === 0) faults.push(`${address} sent nothing`);
    // What its applications sent over the Internet is what it sent there, and no less or more.
    const used = await world.applications.readAddressApplications(
      world.siteId,
      address,
      firstMinute,
      lastMinute + 60,
    );
    const named = used.reduce((sum, one) => sum + one.outboundBytes, 0);
    if (named !== wanBytes)
      faults.push(`${address}: applications sent ${named} of ${wanBytes} bytes to the Internet`);
  }
  const spoofed = minutes.flatMap((one) => one.spoofed ?? []);
  const second = new Set<string>(guests[1].addresses.map((text) => formatAddress(parseAddress(text)!)));
  const isOurs = spoofed.every(
    ({ address, deviceKey }) => second.has(address) && deviceKey === `br0|${guests[0].mac}`,
  );
  if (!isOurs) faults.push(`spoofed traffic that was not sent: ${JSON.stringify(spoofed)}`);
  const spoofedBytes = spoofed.reduce((sum, { bytes }) => sum + bytes, 0);
  return { faults, spoofedBytes };
}
