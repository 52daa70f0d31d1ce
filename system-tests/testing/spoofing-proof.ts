/**
 * Guests of a lab send at the same time by random schedules. One of them also sends from the other's addresses, then with MACs that
 * are not its own, and goes on when the other's addresses have moved to a third guest. What the sensor counts, and what the monitor
 * then knows of each address, has to equal nftables' counters at the ports: of what the owner itself sent, and of what was spoofed.
 *
 * Left out is a frame with another guest's MAC and address: only its port tells it from the owner's own.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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

const [spoofer, owner, nextOwner] = [
  { name: 'vm-1', mac: '52:54:00:5e:00:11', addresses: ['203.0.113.11', '2001:db8:113::11'] },
  { name: 'vm-2', mac: '52:54:00:5e:00:12', addresses: ['203.0.113.12', '2001:db8:113::12'] },
  // The addresses of the second, when they have moved.
  { name: 'vm-3', mac: '52:54:00:5e:00:13', addresses: ['203.0.113.12', '2001:db8:113::12'] },
] as const;
type Guest = typeof spoofer | typeof owner | typeof nextOwner;
type Family = 0 | 1;
const families: readonly Family[] = [0, 1];
const noGuestsMac = '52:54:00:5e:00:99';
/** Only the plan of after the move gives it an owner, so that the first window with it as spoofed tells that the plan is followed. */
const canary = { mac: '52:54:00:5e:00:98', addresses: ['203.0.113.99', '2001:db8:113::99'] } as const;

export interface SpoofingResult {
  faults: string[];
  /** Bytes that the first guest sent from addresses of others, or with MACs that are not its own. */
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
    await addGuest(lab, spoofer);
    await addGuest(lab, owner);
    await fixNeighbours(lab, owner);
    await lab.execInHypervisor(['nft', ['add table netdev ports', ...countersOfPorts()].join('\n')]);
    await countPort(lab, spoofer);
    await countPort(lab, owner);
    const sensor = spawnSensor(lab);
    const follow = async (owners: readonly { mac: string; addresses: readonly string[] }[]) => {
      const plan = await planOf(world, owners);
      sensor.follow(guarded ? plan : { ...plan, owners: [] });
    };
    await follow([spoofer, owner]);
    await sensor.says('listening');
    const random = seededRandom(seed);
    const length = Math.ceil((n * framesOfSchedule) / 3);
    const send = (guest: Guest, frames: Uint8Array[]) => sendFrames(lab, dataDir, guest, frames);
    const sendBoth = (present: Guest, tricks: Tricks) =>
      Promise.all([
        send(
          spoofer,
          listOf(length, () => spooferFrame(random, present, tricks)),
        ),
        send(
          present,
          listOf(length / 3, () => ownFrame(random, present)),
        ),
      ]);
    await sendBoth(owner, { macs: [spoofer.mac], isAlsoInternal: true });
    await sendBoth(owner, { macs: [spoofer.mac, owner.mac, noGuestsMac], isAlsoInternal: false });
    await readQuietPorts(lab);
    await lab.remove(owner.name);
    await addGuest(lab, nextOwner);
    await fixNeighbours(lab, nextOwner);
    await countPort(lab, nextOwner);
    await follow([spoofer, nextOwner, canary]);
    if (guarded)
      await until('the new plan is followed', patientMs, async () => {
        await send(spoofer, [frameOf(random, spoofer.mac, canary.addresses[0], internetOf(0))]);
        return sensor.hasSaid(`spoofed ${canary.addresses[0]}`);
      });
    await sendBoth(nextOwner, { macs: [spoofer.mac, owner.mac, noGuestsMac], isAlsoInternal: false });
    const counted = await readQuietPorts(lab);
    const minutes = await sensor.end();
    await world.apply(createSpool().upload(minutes));
    return await compare(world, minutes, counted);
  } finally {
    await lab.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function addGuest(lab: Lab, { name, mac, addresses }: Guest): Promise<void> {
  await lab.put({ name, mac, addresses: addresses.map((address) => ({ address })) });
  // What the sensor does with spoofed packets shows only where the hypervisor lets them pass.
  await lab.setGuard(name, 'off');
}

/** The plan as the monitor makes it of its inventory. */
async function planOf(
  world: Awaited<ReturnType<typeof createMonitorWorld>>,
  owners: readonly { mac: string; addresses: readonly string[] }[],
): Promise<SensorPlan> {
  const { sites, siteId, spoofing, database } = world;
  await sites.mapCluster(systemActor, 7, siteId);
  await database.pool.query('delete from vm_placements');
  for (const [i, { mac, addresses }] of owners.entries())
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

/** So that no packet of address resolution comes after the last one of a schedule, and none goes to who had the address before. */
async function fixNeighbours(lab: Lab, present: Guest): Promise<void> {
  const line = (address: string, mac: string, link: string) => [
    ...['ip', 'neigh', 'replace', address, 'lladdr', mac, 'dev', link, 'nud', 'permanent'],
  ];
  for (const family of families) {
    const [ours, theirs] = [spoofer.addresses[family], present.addresses[family]];
    await lab.execInGuest(spoofer.name, line(theirs, present.mac, links.guest));
    await lab.execInGuest(present.name, line(ours, spoofer.mac, links.guest));
    await lab.execInHypervisor(line(theirs, present.mac, links.bridge));
  }
}

/** What an owner sent from its address, of this to the Internet, and what was given for it at any port; the rest is spoofed. */
interface Counted {
  rxBytes: number;
  txBytes: number;
  wanBytes: number;
}

const keysOfAddresses = families.flatMap((family) => [
  { key: `spoofer${family}`, address: spoofer.addresses[family], family },
  { key: `owner${family}`, address: owner.addresses[family], family },
]);
/** Each MAC from which the first guest sends, and from which of the addresses this is spoofing. */
const spoofings = keysOfAddresses.flatMap(({ key, address, family }) =>
  [spoofer.mac, owner.mac, noGuestsMac].flatMap((mac, i) =>
    address === spoofer.addresses[family] && mac === spoofer.mac
      ? []
      : [{ name: `spoofed${i}-${key}`, address, family, mac }],
  ),
);

function countersOfPorts(): string[] {
  const names = keysOfAddresses.flatMap(({ key }) => [`tx-${key}`, `wan-${key}`, `rx-${key}`]);
  return [...names, ...spoofings.map(({ name }) => name)].map((name) => `add counter netdev ports ${name}`);
}

/** Counts a guest's port by the counters of the addresses. */
async function countPort(lab: Lab, guest: Guest): Promise<void> {
  const link = nameGuestLink(guest.name);
  const rules = keysOfAddresses.flatMap(({ key, address, family }) => {
    const ip = family === 0 ? 'ip' : 'ip6';
    const own = `add rule netdev ports ${link}-in ether saddr ${guest.mac} ${ip} saddr ${address}`;
    const given = `add rule netdev ports ${link}-out ${ip} daddr ${address} counter name rx-${key}`;
    if (address !== guest.addresses[family]) return [given];
    return [
      given,
      `${own} counter name tx-${key}`,
      `${own} ${ip} daddr ${internetOf(family)} counter name wan-${key}`,
    ];
  });
  const spoofed = guest === spoofer ? spoofings : [];
  const lines = [
    `add chain netdev ports ${link}-in { type filter hook ingress device ${link} priority -400; }`,
    `add chain netdev ports ${link}-out { type filter hook egress device ${link} priority 400; }`,
    ...rules,
    ...spoofed.map(
      ({ name, address, family, mac }) =>
        `add rule netdev ports ${link}-in ether saddr ${mac} ${family === 0 ? 'ip' : 'ip6'} saddr ${address} counter name ${name}`,
    ),
  ];
  await lab.execInHypervisor(['nft', lines.join('\n')]);
}

interface Ports {
  addresses: Map<string, Counted>;
  /** Bytes by \`address mac\`. */
  spoofed: Map<string, number>;
}

async function readPorts(lab: Lab): Promise<Ports> {
  const json = await lab.execInHypervisor(['nft', '-j', 'list', 'counters', 'table', 'netdev', 'ports']);
  const { nftables } = JSON.parse(json) as {
    nftables: { counter?: { name: string; bytes: number; packets: number } }[];
  };
  const named = new Map(nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter]] : [])));
  const addresses = keysOfAddresses.map(({ key, address }): [string, Counted] => {
    const given = named.get(`rx-${key}`)!;
    // At egress the Ethernet header is still on.
    const rxBytes = given.bytes - 14 * given.packets;
    return [
      address,
      { txBytes: named.get(`tx-${key}`)!.bytes, wanBytes: named.get(`wan-${key}`)!.bytes, rxBytes },
    ];
  });
  const spoofed = spoofings.map(({ name, address, mac }): [string, number] => [
    `${address} ${mac}`,
    named.get(name)!.bytes,
  ]);
  return { addresses: new Map(addresses), spoofed: new Map(spoofed.filter(([, bytes]) => bytes > 0)) };
}

/** The counters when nothing comes any more. */
async function readQuietPorts(lab: Lab): Promise<Ports> {
  let last = '';
  let same = 0;
  return await until('the ports are quiet', patientMs, async () => {
    const ports = await readPorts(lab);
    const text = JSON.stringify([...ports.addresses, ...ports.spoofed]);
    same = text === last ? same + 1 : 0;
    last = text;
    return same >= 5 && ports;
  });
}

function spawnSensor(lab: Lab) {
  const [program, ...args] = lab.inHypervisor([
    ...[process.execPath, '--disable-warning=ExperimentalWarning', sensorFile],
    ...[links.uplink, links.bridge],
  ]) as [string, ...string[]];
  const child: ChildProcessWithoutNullStreams = spawn(program, args, { stdio: 'pipe' });
  let said = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  const hasSaid = (line: string) => said.split('\n').includes(line);
  return {
    follow(plan: SensorPlan): void {
      child.stdin.write(`${JSON.stringify(plan)}\n`);
    },
    hasSaid,
    says: (line: string) =>
      until(
        `the sensor says ${line}`,
        patientMs,
        () => hasSaid(line),
        () => child.exitCode !== null && complaint,
      ),
    async end(): Promise<TelemetryMinute[]> {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'close');
      if (child.exitCode !== 0) throw new Error(`the sensor ended with ${child.exitCode}: ${complaint}`);
      return JSON.parse(said.slice(said.lastIndexOf('\n') + 1)) as TelemetryMinute[];
    },
  };
}

function listOf<T>(length: number, make: () => T): T[] {
  return Array.from({ length }, make);
}

async function sendFrames(lab: Lab, dataDir: string, guest: Guest, frames: Uint8Array[]): Promise<void> {
  const file = join(dataDir, `frames-${guest.name}`);
  writeFileSync(file, frames.map((frame) => Buffer.from(frame).toString('hex')).join('\n'));
  await lab.execInGuest(guest.name, [process.execPath, senderFile, links.guest, file]);
}

/** What the first guest does besides sending as itself. */
interface Tricks {
  /** From which it sends. */
  macs: readonly string[];
  /**
   * Whether it also sends to the other guest. Not where it takes the other's MAC: the bridge then looks for that MAC at its
   * port, and gives it nothing that it sent itself.
   */
  isAlsoInternal: boolean;
}

/** Three quarters are from addresses of the other, and what is left may be from its own with a MAC that is not. */
function spooferFrame(random: () => number, present: Guest, { macs, isAlsoInternal }: Tricks): Uint8Array {
  const pick = picker(random);
  const family = pick(families);
  const from = random() < 0.75 ? present : spoofer;
  // As the owner in both is what only the port can tell.
  const mac = pick(macs.filter((one) => from === spoofer || one !== present.mac));
  const isInternal = isAlsoInternal && random() < 0.2;
  return isInternal
    ? frameOf(random, mac, from.addresses[family], present.addresses[family], present.mac)
    : frameOf(random, mac, from.addresses[family], internetOf(family));
}

function ownFrame(random: () => number, guest: Guest): Uint8Array {
  const family = picker(random)(families);
  const from = guest.addresses[family];
  return random() < 0.8
    ? frameOf(random, guest.mac, from, internetOf(family))
    : frameOf(random, guest.mac, from, spoofer.addresses[family], spoofer.mac);
}

/** A packet of random ports, flags and length, to the router's MAC unless another is named. */
function frameOf(
  random: () => number,
  mac: string,
  from: string,
  to: string,
  receiver: string = macs.bridge,
): Uint8Array {
  const pick = picker(random);
  const ends = { from, to, fromPort: pick([40_000, 40_001]), toPort: pick([123, 443]) };
  const data = new Uint8Array(Math.floor(random() * 1000));
  const packet = random() < 0.3 ? tcp(ends, pick([Tcp.syn, Tcp.ack, Tcp.reset]), 1, data) : udp(ends, data);
  if (packet[0]! >> 4 === 4) sumHeader(packet);
  const frame = ethernet(packet, { source: mac });
  frame.set(Buffer.from(receiver.replaceAll(':', ''), 'hex'), 0);
  return frame;
}

function picker(random: () => number) {
  return <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;
}

function internetOf(family: Family): string {
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
  counted: Ports,
): Promise<SpoofingResult> {
  const faults: string[] = [];
  const lost = minutes.reduce((sum, { totals }) => sum + totals.kernelDropped, 0);
  if (lost > 0) faults.push(`the captures lost ${lost} packets`);
  const firstMinute = Math.min(...minutes.map(({ minute }) => minute));
  const lastMinute = Math.max(...minutes.map(({ minute }) => minute));
  for (const [address, { rxBytes, txBytes, wanBytes }] of counted.addresses) {
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
  const spoofed = new Map<string, number>();
  for (const { address, deviceKey, bytes } of minutes.flatMap((one) => one.spoofed ?? [])) {
    if (address === canary.addresses[0]) continue;
    const key = `${address} ${deviceKey.replace('br0|', '')}`;
    spoofed.set(key, (spoofed.get(key) ?? 0) + bytes);
  }
  const sortedText = (all: ReadonlyMap<string, number>) => JSON.stringify([...all].sort());
  if (sortedText(spoofed) !== sortedText(counted.spoofed))
    faults.push(
      `spoofed: the sensor counted ${sortedText(spoofed)}, the port ${sortedText(counted.spoofed)}`,
    );
  const spoofedBytes = [...spoofed.values()].reduce((sum, bytes) => sum + bytes, 0);
  return { faults, spoofedBytes };
}
