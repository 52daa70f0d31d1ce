/** Floods that other tools than ours make: their command lines for each class, family and kind of source. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFlood, type FloodClass, storedStreams } from '#sensor/testing/attack-traffic.ts';
import { pcapFile } from '#sensor/testing/capture-files.ts';
import {
  insideAddresses,
  insideMac,
  outsideAddresses,
  outsideInterface,
  outsideMac,
  runFor,
} from '#sensor/testing/tool-link.ts';
import { readRecorded, writeRecorded } from './recorded-traffic.ts';

export const toolPackages = {
  ip: 'iproute2',
  tcpdump: 'tcpdump',
  hping3: 'hping3',
  nping: 'nmap',
  masscan: 'masscan',
  tcpreplay: 'tcpreplay',
  tcprewrite: 'tcpreplay',
} as const;

export type FloodTool = 'hping3' | 'nping' | 'masscan' | 'tcpreplay';

export interface ToolFlood {
  tool: FloodTool;
  class: FloodClass;
  version: 4 | 6;
  /** One real address, one spoofed address, or many. */
  sources: 'own' | 'one' | 'many';
  /** What is particular about it. */
  what: string;
  /** The command; `pick` makes runs differ. It may need files, which go into `folder`. */
  command: (pick: PickNumber, folder: string) => Promise<string[]> | string[];
}

/** A random whole number from `least` to `most`. */
export type PickNumber = (least: number, most: number) => number;

const port = (pick: PickNumber) => String(pick(1024, 65_000));
const bytes = (pick: PickNumber, least: number, most: number) => String(pick(least, most));

/** Classes by the flags and options that make hping3 send them. Its packets are IPv4 only. */
const hpingShapes: readonly [FloodClass, string, (pick: PickNumber) => string[]][] = [
  ['syn_flood', 'SYN to one port', () => ['-S', '-p', '443']],
  ['syn_flood', 'SYN with data', (pick) => ['-S', '-p', '80', '-d', bytes(pick, 100, 800)]],
  ['ack_flood', 'ACK', (pick) => ['-A', '-p', port(pick)]],
  ['ack_flood', 'FIN, PSH and URG', (pick) => ['-F', '-P', '-U', '-p', port(pick)]],
  ['ack_flood', 'no flags', (pick) => ['-p', port(pick)]],
  ['rst_flood', 'RST', (pick) => ['-R', '-p', port(pick)]],
  [
    'synack_reflection',
    'SYN and ACK from port 443',
    (pick) => ['-S', '-A', '-s', '443', '-k', '-p', port(pick)],
  ],
  ['udp_flood', 'to one port', (pick) => ['--udp', '-p', port(pick), '-d', bytes(pick, 0, 1200)]],
  ['udp_flood', 'to rising ports', (pick) => ['--udp', '-p', '++1024', '-d', bytes(pick, 0, 500)]],
  ['udp_flood', 'small, from port 53', (pick) => ['--udp', '-s', '53', '-k', '-p', port(pick), '-d', '30']],
  [
    'amplification',
    'DNS',
    (pick) => ['--udp', '-s', '53', '-k', '-p', port(pick), '-d', bytes(pick, 400, 1400)],
  ],
  ['amplification', 'NTP', (pick) => ['--udp', '-s', '123', '-k', '-p', port(pick), '-d', '440']],
  ['amplification', 'memcached', (pick) => ['--udp', '-s', '11211', '-k', '-p', port(pick), '-d', '1400']],
  ['icmp_flood', 'echo requests', (pick) => ['--icmp', '-d', bytes(pick, 0, 1200)]],
  ['icmp_flood', 'errors', () => ['--icmp', '-C', '3']],
  [
    'fragment_flood',
    'of datagrams',
    (pick) => ['--udp', '-f', '-p', port(pick), '-d', bytes(pick, 200, 900)],
  ],
  ['fragment_flood', 'of segments', () => ['-S', '-f', '-p', '443', '-d', '400']],
  ['protocol_flood', 'GRE of no meaning', (pick) => ['--rawip', '-H', '47', '-d', bytes(pick, 40, 800)]],
  ['protocol_flood', 'protocol 132', (pick) => ['--rawip', '-H', '132', '-d', bytes(pick, 40, 800)]],
];

function hping(): ToolFlood[] {
  const sources: readonly [ToolFlood['sources'], readonly string[]][] = [
    ['own', []],
    ['one', ['-a', '198.51.100.77']],
    ['many', ['--rand-source']],
  ];
  const target = insideAddresses[4];
  return hpingShapes.flatMap(([name, what, shape]) =>
    sources.map(([kind, source]) => ({
      tool: 'hping3' as const,
      class: name,
      version: 4 as const,
      sources: kind,
      what,
      command: (pick: PickNumber) => {
        const pace = pick(0, 2) === 0 ? ['--flood'] : ['-i', `u${pick(20, 100)}`];
        return ['hping3', '-n', '-q', ...pace, ...source, ...shape(pick), target];
      },
    })),
  );
}

const npingShapes: readonly [FloodClass, string, (pick: PickNumber, version: 4 | 6) => string[]][] = [
  ['syn_flood', 'SYN', () => ['--tcp', '--flags', 'syn', '-p', '443']],
  ['ack_flood', 'ACK', (pick) => ['--tcp', '--flags', 'ack', '-p', port(pick)]],
  ['rst_flood', 'RST', (pick) => ['--tcp', '--flags', 'rst', '-p', port(pick)]],
  [
    'synack_reflection',
    'SYN and ACK',
    (pick) => ['--tcp', '--flags', 'syn,ack', '-g', '443', '-p', port(pick)],
  ],
  [
    'udp_flood',
    'to one port',
    (pick) => ['--udp', '-g', '40001', '-p', port(pick), '--data-length', bytes(pick, 0, 1000)],
  ],
  [
    'amplification',
    'DNS',
    (pick) => ['--udp', '-g', '53', '-p', port(pick), '--data-length', bytes(pick, 400, 1300)],
  ],
  ['amplification', 'CLDAP', (pick) => ['--udp', '-g', '389', '-p', port(pick), '--data-length', '1300']],
  ['icmp_flood', 'echo requests', (_, version) => ['--icmp', '--icmp-type', version === 4 ? '8' : '128']],
];

function nping(): ToolFlood[] {
  const pace = (pick: PickNumber) => ['--rate', String(pick(3000, 12_000)), '-c', '0', '-N', '-q'];
  const ethernet = ['-e', outsideInterface, '--source-mac', outsideMac, '--dest-mac', insideMac];
  const of = (version: 4 | 6, spoofed: string | null, shape: (typeof npingShapes)[number]): ToolFlood => {
    const source = spoofed ?? outsideAddresses[version];
    const family = version === 6 ? ['-6', ...ethernet, '-S', source] : spoofed ? ['-S', source] : [];
    return {
      tool: 'nping',
      class: shape[0],
      version,
      sources: spoofed ? 'one' : 'own',
      what: shape[1],
      command: (pick) => [
        'nping',
        ...family,
        ...pace(pick),
        ...shape[2](pick, version),
        insideAddresses[version],
      ],
    };
  };
  const fragments: (typeof npingShapes)[number] = [
    'fragment_flood',
    'of datagrams',
    (pick) => ['--udp', '-p', port(pick), '--data-length', bytes(pick, 600, 1300), '--mtu', '256'],
  ];
  return [
    ...npingShapes.flatMap((shape) => [
      of(4, null, shape),
      of(4, '198.51.100.77', shape),
      of(6, null, shape),
      of(6, '2001:db8:f00d::77', shape),
    ]),
    of(4, null, fragments),
    of(4, '198.51.100.77', fragments),
  ];
}

function masscan(): ToolFlood[] {
  const macs = ['--router-mac', insideMac, '--adapter-mac', outsideMac, '--adapter', outsideInterface];
  const of = (
    version: 4 | 6,
    sources: ToolFlood['sources'],
    name: FloodClass,
    what: string,
    shape: string[],
  ): ToolFlood => ({
    tool: 'masscan',
    class: name,
    version,
    sources,
    what,
    command: (pick) => {
      const from = sources === 'own' ? outsideAddresses[version] : '198.18.64.0-198.18.127.255';
      const rate = ['--rate', String(pick(5000, 20_000))];
      return [
        'masscan',
        '--infinite',
        ...shape,
        ...rate,
        '--adapter-ip',
        from,
        ...macs,
        insideAddresses[version],
      ];
    },
  });
  return [
    of(4, 'own', 'syn_flood', 'SYN to one port', ['-p443']),
    of(4, 'many', 'syn_flood', 'SYN to one port', ['-p443']),
    of(4, 'many', 'syn_flood', 'SYN to all ports', ['-p0-65535']),
    of(6, 'own', 'syn_flood', 'SYN to one port', ['-p443']),
    of(4, 'own', 'udp_flood', 'to one port', ['-pU:9000']),
    of(4, 'many', 'udp_flood', 'to all ports', ['-pU:0-65535']),
    of(6, 'own', 'udp_flood', 'to one port', ['-pU:9000']),
    of(4, 'own', 'icmp_flood', 'echo requests', ['--ping']),
    of(4, 'many', 'icmp_flood', 'echo requests', ['--ping']),
  ];
}

const replayed: readonly FloodClass[] = [
  'fragment_flood',
  'amplification',
  'syn_flood',
  'synack_reflection',
  'ack_flood',
  'rst_flood',
  'udp_flood',
  'icmp_flood',
  'protocol_flood',
];

const ends = Buffer.from(`${insideMac}:${outsideMac}`.replaceAll(':', ''), 'hex');

function tcpreplay(): ToolFlood[] {
  return replayed.flatMap((name) =>
    ([4, 6] as const).map((version) => ({
      tool: 'tcpreplay' as const,
      class: name,
      version,
      sources: 'many' as const,
      what: 'generated packets',
      command: async (pick: PickNumber, folder: string) => {
        const file = join(folder, `replayed-${name}-${version}.pcap`);
        const made = join(folder, 'made.pcap');
        writeFileSync(made, generatedFlood({ class: name, version }, pick(1, 1_000_000), 2000, 1));
        // It warns of each packet that has no checksum, such as GRE, and makes frames of IPv6 multicast.
        await runFor(['tcprewrite', '--fixcsum', `--infile=${made}`, `--outfile=${file}`], 30);
        const frames = readRecorded(file);
        for (const { bytes } of frames) bytes.set(ends);
        writeRecorded(file, frames);
        const pace = pick(0, 2) === 0 ? '--topspeed' : `--pps=${pick(4000, 20_000)}`;
        return ['tcpreplay', '-q', '-K', '--loop=0', pace, '-i', outsideInterface, file];
      },
    })),
  );
}

/** A capture file of a flood as our generator makes it. */
export function generatedFlood(
  { class: name, version }: Pick<ToolFlood, 'class' | 'version'>,
  seed: number,
  perSecond: number,
  seconds: number,
): Uint8Array {
  const shape = { class: name, version, direction: 'inbound', ratio: 1 } as const;
  const stream = { step: createFlood(shape, seed), perSecond, from: 0, to: seconds };
  return pcapFile(storedStreams([stream]));
}

export const toolFloods: readonly ToolFlood[] = [...hping(), ...nping(), ...masscan(), ...tcpreplay()];
