/**
 * Uploads at random, and small: few addresses, names and minutes, so that captures overlap, rows of one key meet, owners
 * disagree and ties happen all the time.
 */
import { seededRandom } from '#common/random/index.ts';
import type {
  TelemetryEvidence,
  TelemetryMinute,
  TelemetryUsageRow,
} from '#contracts/sensor-api/telemetry.ts';
import type { FactOrigin, FactUpload } from '../contract/facts.ts';

export type Random = (below: number) => number;

/** Whole numbers from 0 up to and without `below`, the same for the same seed. */
export function seededBelow(seed: number): Random {
  const next = seededRandom(seed);
  return (below) => Math.floor(next() * below);
}

const captures = [
  ['eth0', 'uplink'],
  ['br0', 'bridge'],
  ['br1', 'bridge'],
] as const;
const locals = ['192.0.2.10', '192.0.2.11', '192.0.2.12', '2001:db8::10', '10.0.0.9'];
const remotes = ['198.51.100.7', '198.51.100.8', '203.0.113.5', '2001:db8:ffff::1'];
const names: readonly (readonly [string, TelemetryEvidence])[] = [
  ['example.net', 'tls_sni'],
  ['example.net', 'dns'],
  ['example.org', 'http_host'],
  ['203.0.113.5', 'none'],
  ['GRE', 'ip_protocol'],
];
const macs = ['02:00:00:00:00:01', '02:00:00:00:00:02'];
const directions = ['outbound', 'outbound', 'inbound', 'internal', 'transit'] as const;

export interface RandomUploads {
  origins: readonly FactOrigin[];
  /** Minutes are chosen from these. */
  minutes: readonly number[];
}

/** One upload of one of these sensors. */
export function randomUpload(random: Random, { origins, minutes }: RandomUploads): FactUpload {
  const pick = <T>(all: readonly T[]): T => all[random(all.length)]!;
  const origin = pick(origins);
  const minute = pick(minutes);
  // Often the very same traffic at several captures, sometimes a part of it, sometimes something else.
  const seen = randomMinute(random, minute);
  const told = captures.slice(random(2), 1 + random(3)).map(([capture, role]): TelemetryMinute => {
    const own = random(3) === 0 ? randomMinute(random, minute) : seen;
    const usage = random(4) === 0 ? own.usage.slice(1) : own.usage;
    // Keys name the segment: mostly the one bridge, and what two bridges see of their own.
    const isApart = random(3) === 0;
    const hosts = own.hosts.map(({ deviceKey: mac, ...host }) => {
      const segment = isApart ? capture : 'br0';
      return { ...host, deviceKey: mac === '' ? '' : `${segment}|${mac}` };
    });
    return { ...own, hosts, usage, capture, role };
  });
  const gap = { fromMinute: minute, toMinute: minute + 60 * random(3), capture: pick(['', 'eth0']) };
  const gaps = random(6) === 0 ? [{ ...gap, reason: 'refused' as const }] : [];
  return { origin, token: randomToken(random), minutes: told, gaps };
}

/** The same, of those that have minutes. */
export function randomMinutes(random: Random, options: RandomUploads): FactUpload {
  for (;;) {
    const upload = randomUpload(random, options);
    if (upload.minutes.length > 0) return upload;
  }
}

/** A token that no other upload has. */
export function randomToken(random: Random): FactUpload['token'] {
  const digits = (count: number) => Array.from({ length: count }, () => random(16).toString(16)).join('');
  const spoolId = [8, 4, 4, 4, 12].map(digits).join('-');
  return { spoolId, sequence: 1 + random(1000) };
}

function randomMinute(random: Random, minute: number): Omit<TelemetryMinute, 'capture' | 'role'> {
  const pick = <T>(all: readonly T[]): T => all[random(all.length)]!;
  const addresses = locals.filter(() => random(2) === 0);
  const ipPackets = random(50);
  const parserDropped = random(8) === 0 ? random(3) : 0;
  return {
    minute,
    observedMs: pick([60_000, 60_000, 30_000, 15_000]),
    totals: {
      packets: ipPackets + parserDropped,
      ipPackets,
      ipBytes: random(9000),
      nonIpPackets: 0,
      parserDropped,
      kernelDropped: random(4) === 0 ? random(20) : 0,
      detailTruncated: random(3),
      mergedFrames: random(6) === 0 ? 1 : 0,
    },
    hosts: addresses.map((address) => {
      const [rxBytes, txBytes, packets] = [random(5), random(5), random(9)];
      const ownScan = {
        rxBytes: random(rxBytes + 1),
        txBytes: random(txBytes + 1),
        packets: 1 + random(packets),
      };
      const hasOwnScan = packets > 0 && random(3) === 0;
      // Of these numbers, so that the draws after them are the same with and without.
      const dropped = {
        ...{ rxBytes: (packets * 3 + txBytes) % 4, rxPackets: 1 + (packets % 2) },
        ...{ txBytes: (packets + rxBytes) % 4, txPackets: rxBytes % 2 },
      };
      const hasDropped = packets % 3 === 0;
      const parts = { ...(hasOwnScan && { ownScan }), ...(hasDropped && { dropped }) };
      const counted = { rxBytes, txBytes, packets, ...parts };
      return { address, isLocal: true, ...counted, deviceKey: pick([...macs, '']) };
    }),
    usage: Array.from({ length: random(5) }, () => randomUsage(random, minute)),
  };
}

function randomUsage(random: Random, minute: number): TelemetryUsageRow {
  const pick = <T>(all: readonly T[]): T => all[random(all.length)]!;
  const direction = pick(directions);
  const [name, evidence] = pick(names);
  const isClientLocal = direction === 'outbound' || direction === 'internal';
  const isServerLocal = direction === 'inbound' || direction === 'internal';
  return {
    client: pick(isClientLocal ? locals : remotes),
    server: pick(isServerLocal ? locals : remotes),
    protocol: evidence === 'ip_protocol' ? 47 : 6,
    serverPort: evidence === 'ip_protocol' ? null : pick([443, 443, 22, 50_000]),
    direction,
    name,
    evidence,
    clientBytes: random(4),
    serverBytes: random(4),
    packets: random(5),
    clientLastSentMs: random(3) === 0 ? 0 : minute * 1000 + random(60_000),
    serverLastSentMs: random(3) === 0 ? 0 : minute * 1000 + random(60_000),
  };
}

export const sampleAddresses: readonly string[] = locals;
export const sampleRemotes: readonly string[] = remotes;
export const sampleKeys: readonly string[] = [
  ...macs.map((mac) => `br0|${mac}`),
  `br1|${macs[0]}`,
  'br0|02:00:00:00:00:99',
];
