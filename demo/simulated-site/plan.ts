/**
 * What stands at the simulated site: hypervisors, their servers, and what each server offers and uses. All of it follows from the
 * seed, so that what was uploaded before a stop is what would be uploaded again.
 *
 * Addresses are of ranges for documentation and benchmarks, which no network uses; no packet of them exists.
 */
import type { TelemetryEvidence } from '#contracts/sensor-api/telemetry.ts';
import type { Rhythm } from '#lab/traffic/daily-rhythm.ts';
import { between, createDraw, type Draw, pick, pickOfTail } from './random.ts';

/** One application of a server. */
export interface Use {
  direction: 'inbound' | 'outbound';
  /** Blank: only the port tells what it is. */
  name: string;
  evidence: TelemetryEvidence;
  /** IP protocol. */
  protocol: number;
  port: number;
  peers: readonly string[];
  /** How likely it is that a minute of a mean hour has some. */
  chance: number;
  rhythm: Rhythm;
  /** Of a minute with some, on the mean. */
  clientBytes: number;
  serverBytes: number;
}

export interface SimulatedServer {
  address: string;
  mac: string;
  uses: readonly Use[];
}

export interface Hypervisor {
  index: number;
  /** Host name of the sensor and name of its node. */
  node: string;
  servers: readonly SimulatedServer[];
}

export interface SitePlan {
  seed: number;
  hypervisors: readonly Hypervisor[];
}

/** 20 hypervisors with three servers each keep seven days at some two million rows. */
const hypervisorCount = 20;
export const serversEach = 3;
const sitePrefix = '192.0.2.0/24';
/** The local prefixes of the site. */
export const siteCidrs: readonly string[] = [sitePrefix];
/** Another seed makes the loader begin anew; a change of what follows from it needs one. */
export const seedOfDemo = 7;
/** The interface that the simulated sensors capture. */
export const captureName = 'eno1';

export const nodes: readonly string[] = Array.from(
  { length: hypervisorCount },
  (_, index) => `sim-hv-${String(index + 1).padStart(2, '0')}`,
);

const tcp = 6;
const udp = 17;

/** What a server is for: its own services. A blank name is one that only its port tells. */
interface Service {
  port: number;
  protocol?: number;
  isNamed?: boolean;
  chance: number;
  clientBytes: number;
  serverBytes: number;
}

interface Role {
  rhythm: Rhythm;
  services: readonly Service[];
  /** Applications out there that it uses. */
  outbound: number;
}

const roles: readonly Role[] = [
  {
    rhythm: 'day',
    outbound: 8,
    services: [
      { port: 443, isNamed: true, chance: 0.95, clientBytes: 90_000, serverBytes: 2_400_000 },
      { port: 80, chance: 0.3, clientBytes: 4_000, serverBytes: 30_000 },
    ],
  },
  {
    rhythm: 'day',
    outbound: 6,
    services: [
      { port: 25, chance: 0.5, clientBytes: 220_000, serverBytes: 6_000 },
      { port: 993, chance: 0.5, clientBytes: 12_000, serverBytes: 180_000 },
    ],
  },
  {
    rhythm: 'day',
    outbound: 3,
    services: [{ port: 5432, chance: 0.8, clientBytes: 150_000, serverBytes: 900_000 }],
  },
  {
    rhythm: 'evening',
    outbound: 5,
    services: [
      { port: 443, protocol: udp, chance: 0.8, clientBytes: 120_000, serverBytes: 5_200_000 },
      { port: 443, isNamed: true, chance: 0.4, clientBytes: 30_000, serverBytes: 700_000 },
    ],
  },
  {
    rhythm: 'night',
    outbound: 2,
    services: [{ port: 22, chance: 0.2, clientBytes: 9_000_000, serverBytes: 60_000 }],
  },
  {
    rhythm: 'steady',
    outbound: 4,
    services: [
      { port: 53, protocol: udp, chance: 0.7, clientBytes: 9_000, serverBytes: 21_000 },
      { port: 123, protocol: udp, chance: 0.4, clientBytes: 3_000, serverBytes: 3_000 },
    ],
  },
  {
    rhythm: 'day',
    outbound: 5,
    services: [
      { port: 51820, protocol: udp, chance: 0.6, clientBytes: 400_000, serverBytes: 900_000 },
      { port: 3389, chance: 0.15, clientBytes: 40_000, serverBytes: 600_000 },
    ],
  },
];
/** Most servers are for the web. */
const roleOrder = [0, 1, 0, 2, 3, 0, 4, 5, 0, 6] as const;

/** Of makers of virtual machines, which the bundled table of manufacturers names. */
const macPrefixes = ['bc:24:11', '00:50:56', '00:16:3e', '00:15:5d'] as const;

export function planSite(seed: number): SitePlan {
  return {
    seed,
    hypervisors: nodes.map((node, index) => ({
      index,
      node,
      servers: Array.from({ length: serversEach }, (_, at) => planServer(seed, index * serversEach + at)),
    })),
  };
}

/** What the first hypervisor's servers are called at operations, and whose they are. */
const owned = [
  { name: 'shop-1', email: 'customer@demo.example' },
  { name: 'mail-1', email: 'customer@demo.example' },
  { name: 'blog-1', email: 'other@demo.example' },
];

/** What operations needs to have these servers: `SVC_DEMO_SIMULATED_SITE`, and the guests that its driver hands out. */
export function ownedServers(days: number) {
  const { node, servers } = planSite(seedOfDemo).hypervisors[0]!;
  const known = servers.map(({ address, mac }, at) => ({ ...owned[at]!, address, mac }));
  return {
    site: {
      ...{ node, days },
      pool: {
        ...{ prefix: sitePrefix, gateway: '192.0.2.1' },
        ...{ firstAddress: '192.0.2.10', lastAddress: '192.0.2.250' },
      },
      servers: known.map(({ name, email, address }) => ({ name, email, address })),
    },
    guests: known.map(({ name, mac, address }) => ({ name, mac, addresses: [address] })),
  };
}

function planServer(seed: number, number: number): SimulatedServer {
  const draw = createDraw(seed, 1, number);
  const role = roles[roleOrder[number % roleOrder.length]!]!;
  // Some servers have far more to do than others.
  const size = 0.15 + 3 * draw() ** 3;
  const ownDomain = `customer-${String(number + 1).padStart(2, '0')}.example`;
  const hosted = role.services.map(
    (service): Use => ({
      direction: 'inbound',
      name: service.isNamed ? ownDomain : '',
      evidence: service.isNamed ? 'tls_sni' : 'none',
      protocol: service.protocol ?? tcp,
      port: service.port,
      peers: drawPeers(draw, 24),
      chance: service.chance,
      rhythm: role.rhythm,
      clientBytes: service.clientBytes * size,
      serverBytes: service.serverBytes * size,
    }),
  );
  const used = new Map<string, Use>();
  while (used.size < role.outbound) {
    const name = domains[pickOfTail(draw, domains.length)]!;
    if (!used.has(name)) used.set(name, planOutbound(draw, name));
  }
  return {
    address: `192.0.2.${10 + number}`,
    mac: `${macPrefixes[number % macPrefixes.length]}:00:00:${(16 + number).toString(16)}`,
    uses: [...hosted, ...used.values(), planLookups(draw)],
  };
}

function planOutbound(draw: Draw, name: string): Use {
  const isHttp = draw() < 0.15;
  return {
    direction: 'outbound',
    name,
    evidence: isHttp ? 'http_host' : 'tls_sni',
    protocol: tcp,
    port: isHttp ? 80 : 443,
    peers: drawPeers(draw, 3),
    chance: 0.03 + 0.25 * draw() ** 2,
    rhythm: pick<Rhythm>(draw, ['day', 'day', 'steady', 'evening', 'night']),
    clientBytes: between(draw, 1_500, 30_000),
    serverBytes: between(draw, 5_000, 400_000),
  };
}

function planLookups(draw: Draw): Use {
  return {
    direction: 'outbound',
    name: '',
    evidence: 'none',
    protocol: udp,
    port: 53,
    peers: ['198.18.0.53'],
    chance: 0.15 + 0.2 * draw(),
    rhythm: 'day',
    clientBytes: 900,
    serverBytes: 2_400,
  };
}

/** Addresses of the range for benchmarks, in few networks: people come back from the same ones. */
function drawPeers(draw: Draw, count: number): string[] {
  return Array.from({ length: count }, () => {
    const network = pickOfTail(draw, 256);
    return `198.${18 + (network & 1)}.${network}.${between(draw, 1, 250)}`;
  });
}

/** Names of applications that servers of the simulated site use. All are below `.example`, which is reserved for documentation. */
const first = [
  'blue',
  'clear',
  'early',
  'fair',
  'grand',
  'keen',
  'lucky',
  'north',
  'open',
  'quick',
  'silver',
];
const second = ['market', 'courier', 'metrics', 'mirror', 'payments', 'photos', 'radio', 'search', 'travel'];
const third = ['weather', 'wiki'];

/** 121 domains, in the order of their use. */
const domains: readonly string[] = [...second, ...third].flatMap((noun, row) =>
  first.map((_, column) => `${first[(row + column) % first.length]}${noun}.example`),
);
