/**
 * `npm run prove -- private-networks`: in `n` schedules four guests of two libvirt nodes join and leave private networks, are switched off and on,
 * and networks end while others take their numbers, all at once. Each NIC sends without a pause, and no frame of another network ever goes
 * out to one.
 *
 * Guests run firmware alone, which sends nothing: frames are let in at the port of their NIC, before its filters, as if it had sent them.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '#common/random/index.ts';
import type { HypervisorDriver, PrivateInterface } from '#operations/hypervisors/index.ts';
import { createLibvirtDriver } from '#operations/hypervisors/libvirt/driver.ts';
import { guest as exampleGuest, node as exampleNode } from '#operations/hypervisors/testing/example-guest.ts';
import { createLibvirtWorld, type LibvirtWorld } from '#operations/hypervisors/testing/libvirt-world.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { until } from '#service-kit/testing/until.ts';

export const name = 'private-networks';

const sendOnDemandFile = fileURLToPath(new URL('../lab/testing/send-on-demand.ts', import.meta.url));
const patientMs = 120_000;
const [firstSegment, segmentsMax, guestsOfNode] = [131, 2, 2];

interface Guest {
  name: string;
  number: number;
  driver: HypervisorDriver;
}

interface Network {
  id: number;
  segment: number;
  members: Guest[];
}

/** Named by its network and its guest: no network has the id of an earlier one. */
const nicOf = (network: Network, guest: Guest): PrivateInterface => ({
  ...{ networkId: network.id, segment: network.segment, prefixLength: 24 },
  mac: `52:56:00:${[network.id >> 8, network.id & 255, guest.number].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`,
  address: `10.20.0.${guest.number}`,
});
/** A port has the MAC of its NIC but for the first byte. */
const networkOf = (mac: string) => Number.parseInt(mac.slice(9, 14).replace(':', ''), 16);

/** A node whose NICs can be made to send, and which notes what goes out to each. */
async function watchNode(world: LibvirtWorld, folder: string) {
  const run = (...argv: string[]) => {
    const [program, ...args] = world.inside(argv);
    return execFileSync(program!, args, { encoding: 'utf8' });
  };
  // The frames have no checksums, which bridges look at where they consult the rules of packets.
  const consulted = '/proc/sys/net/bridge/bridge-nf-call-ip';
  run('sh', '-e', '-c', `for tables in tables 6tables; do echo 0 > ${consulted}$tables; done`);
  run('ip', 'link', 'add', 'inject', 'type', 'veth', 'peer', 'name', 'inject0');
  for (const link of ['inject', 'inject0']) run('ip', 'link', 'set', link, 'up');
  run(
    'nft',
    `table bridge seen {
      set pairs { type iface_index . ether_addr; size 65535; flags dynamic; }
      chain forwarded { type filter hook forward priority 0; update @pairs { oif . ether saddr }; }
    }`,
  );
  const file = (what: string) => join(folder, `${world.pid}.${what}`);
  /** MACs of NICs by the index of their port, which no later port has: names come again. */
  const ports = new Map<number, string>();
  const listLinks = () =>
    JSON.parse(run('ip', '-j', 'link')) as {
      ifindex: number;
      ifname: string;
      address: string;
      master?: string;
    }[];
  let sender: ReturnType<typeof spawn> | null = null;
  return {
    /** Those of these NICs that the node has send from now on; behind a link that is down a guest can't. */
    async send(macs: ReadonlySet<string>) {
      const present = listLinks()
        .filter(({ ifname, master }) => /^vnet/.test(ifname) && master !== undefined)
        .map((link) => ({ ...link, mac: link.address.replace(/^fe/, '52') }));
      for (const { ifindex, mac } of present) ports.set(ifindex, mac);
      const senders = present.filter(({ mac }) => macs.has(mac));
      const rules = senders.map(
        ({ ifname, mac }) =>
          `filter add dev inject ingress protocol ip u32 match ether src ${mac} action mirred ingress redirect dev ${ifname}`,
      );
      writeFileSync(
        file('tc'),
        ['qdisc replace dev inject clsact', 'filter del dev inject ingress', ...rules].join('\n'),
      );
      run('tc', '-force', '-batch', file('tc'));
      const frames = senders.map(({ mac: source }) => {
        const from = `10.20.0.${Number.parseInt(source.slice(-2), 16)}`;
        return Buffer.from(
          ethernet(udp({ from, fromPort: 9, to: '255.255.255.255', toPort: 9 }, new Uint8Array(8)), {
            source,
          }),
        ).toString('hex');
      });
      sender?.kill('SIGKILL');
      if (frames.length === 0) return;
      writeFileSync(file('hex'), frames.join('\n'));
      const [program, ...args] = world.inside([process.execPath, sendOnDemandFile, 'inject0', file('hex')]);
      sender = spawn(program!, args, { stdio: ['pipe', 'ignore', 'inherit'] });
      await once(sender, 'spawn');
    },
    stop: () => void sender?.kill('SIGKILL'),
    /** What went out since the beginning: the NIC that had it, and the MAC of the one that sent. */
    seen(): { to: string; from: string }[] {
      const { nftables } = JSON.parse(run('nft', '-j', 'list', 'set', 'bridge', 'seen', 'pairs')) as {
        nftables: { set?: { elem?: { concat: [string | number, string] }[] } }[];
      };
      const indexes = new Map(listLinks().map(({ ifname, ifindex }) => [ifname, ifindex]));
      const elements = nftables.flatMap(({ set }) => set?.elem ?? []);
      return elements.flatMap(({ concat: [port, from] }) => {
        // nft has a name for a port that is there, and a number for one that was.
        const to = ports.get(indexes.get(String(port)) ?? Number(port));
        // Bridges speak as well.
        return to === undefined || !from.startsWith('52:56:') ? [] : [{ to, from }];
      });
    },
    /** NICs that have a link. */
    linked(guest: string): string[] {
      const parts = world.virsh('dumpxml', guest).split('<interface ').slice(1);
      return parts
        .filter((part) => !part.includes("<link state='down'/>"))
        .map((part) => /<mac address='([^']+)'/.exec(part)![1]!);
    },
  };
}

/** What is wrong about the two nodes, on purpose. */
const planted: Record<string, (driver: HypervisorDriver) => HypervisorDriver> = {
  'a network has the bridge of another one': (driver) => ({
    ...driver,
    attachInterface: (guest, nic) => driver.attachInterface(guest, { ...nic, segment: firstSegment }),
  }),
  'who leaves a network stays': (driver) => ({
    ...driver,
    detachInterface: async () => {},
    removeNetwork: async () => {},
  }),
};

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
}

async function runSchedules(
  wrap: (driver: HypervisorDriver) => HypervisorDriver,
  { n, seed, report }: Options,
): Promise<{ faults: string[]; frames: number }> {
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const folder = mkdtempSync(join(tmpdir(), 'svc-networks-'));
  await using first = await createLibvirtWorld();
  await using second = await createLibvirtWorld();
  const worlds = [first, second];
  for (let i = 0; i < segmentsMax; i += 1) first.joinBridges(second, `brpn${firstSegment + i}`);
  const nodes = await Promise.all(worlds.map((world) => watchNode(world, folder)));
  const networkBridges = `brpn{${firstSegment}-${firstSegment + segmentsMax - 1}}`;
  const guests = worlds.flatMap((world, node) => {
    const driver = wrap(createLibvirtDriver({ ...exampleNode, uri: world.uri, networkBridges }));
    return Array.from({ length: guestsOfNode }, (_, i): Guest => {
      const number = 1 + node * guestsOfNode + i;
      return { name: `vm-${number}`, number, driver };
    });
  });
  const drivers = [...new Set(guests.map(({ driver }) => driver))];
  const nodeOf = (guest: Guest) => nodes[drivers.indexOf(guest.driver)]!;
  let lastId = 0;
  const networks: Network[] = [];
  const create = () => {
    const segment = [firstSegment, firstSegment + 1].find((one) =>
      networks.every((two) => two.segment !== one),
    )!;
    lastId += 1;
    networks.push({ id: lastId, segment, members: [] });
  };
  const leave = async (network: Network, guest: Guest) => {
    await guest.driver.detachInterface(guest.name, nicOf(network, guest));
    network.members = network.members.filter((one) => one !== guest);
  };
  /** The last ones leave, and the next network takes the number. */
  const replace = async (network: Network) => {
    await Promise.all(network.members.map((guest) => leave(network, guest)));
    for (const driver of drivers) await driver.removeNetwork(network.id);
    networks.splice(networks.indexOf(network), 1);
    create();
  };
  const change = async (guest: Guest) => {
    const network = pick(networks);
    const what = random();
    if (what < 0.15) {
      await guest.driver.setPower(guest.name, 'off');
      await guest.driver.setPower(guest.name, 'on');
    } else if (network.members.includes(guest)) await leave(network, guest);
    else {
      await guest.driver.attachInterface(guest.name, nicOf(network, guest));
      network.members.push(guest);
    }
  };
  const faults: string[] = [];
  let frames = 0;
  try {
    for (const guest of guests)
      await guest.driver.ensureGuest(
        { ...exampleGuest, name: guest.name, mac: null, addresses: [] },
        async () => {},
      );
    for (let i = 0; i < segmentsMax; i += 1) create();
    for (let schedule = 0; schedule < n; schedule += 1) {
      await Promise.all(guests.map(change));
      if (random() < 0.25) await replace(pick(networks));
      const members = networks.flatMap((network) =>
        network.members.map((guest) => nicOf(network, guest).mac),
      );
      await Promise.all(nodes.map((node) => node.send(new Set(members))));
      const wanted = networks.flatMap((network) =>
        network.members.flatMap((to) =>
          network.members
            .filter((from) => from !== to)
            .map((from) => ({ to, mac: nicOf(network, to).mac, from: nicOf(network, from).mac })),
        ),
      );
      const missing = () =>
        wanted.filter(
          ({ to, mac, from }) =>
            !nodeOf(to)
              .seen()
              .some((pair) => pair.to === mac && pair.from === from),
        );
      await until('members have heard each other', patientMs, () => missing().length === 0).catch(() => {
        for (const { mac, from } of missing())
          faults.push(`schedule ${schedule}: ${mac} hears nothing of ${from}`);
      });
      for (const guest of guests)
        for (const mac of nodeOf(guest).linked(guest.name))
          if (!members.includes(mac))
            faults.push(`schedule ${schedule}: ${mac} has a link, and is of no network`);
      for (const { to, from } of nodes.flatMap((node) => node.seen())) {
        frames += 1;
        // Behind a link that is down nothing arrives: an operating system has not let go of the NIC.
        if (networkOf(to) !== networkOf(from) && members.includes(to))
          faults.push(`schedule ${schedule}: ${to} has a frame of ${from}`);
      }
      if (schedule % 10 === 9) report(`${schedule + 1} schedules`);
      if (faults.length > 0) break;
    }
  } finally {
    for (const node of nodes) node.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return { faults, frames };
}

const plantedSchedules = 12;

export async function prove(options: Options) {
  const { faults, frames } = await runSchedules((driver) => driver, options);
  for (const fault of faults) options.report(`FAULT ${fault}`);
  const missed: string[] = [];
  for (const [bug, wrap] of Object.entries(planted)) {
    const found = await runSchedules(wrap, { ...options, n: plantedSchedules, report: () => {} });
    if (found.faults.length === 0) missed.push(bug);
  }
  for (const bug of missed) options.report(`NOT CAUGHT ${bug}`);
  const count = Object.keys(planted).length;
  return {
    claim: `no frame of another network goes out to a NIC, over two nodes (${frames} pairs of NICs looked at)`,
    tried: options.n,
    failures: faults.length,
    plantedBugsCaught: `${count - missed.length} of ${count}`,
  };
}
