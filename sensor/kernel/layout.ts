/**
 * The maps of `counter.bpf.c` in bytes: the same structures, in the byte order of the processor (little endian on all that
 * the sensor runs on). Addresses are in network byte order, as in a packet.
 */
import type { KindReading } from '#sensor/attack-counters/index.ts';
import { formatWords, parseWords } from '#sensor/capture/index.ts';

/** Changes with the maps and their sizes: counters of another layout are not taken up. */
export const layoutVersion = 5;

/** Names of the maps. */
export const mapNames = [
  ...(['settings', 'totals', 'hosts', 'recent', 'vacant', 'names', 'counters', 'near'] as const),
  ...(['prefixes', 'owners', 'senders', 'spoofed'] as const),
];
export type MapName = (typeof mapNames)[number];

export const addressBytes = 20;
export const prefixBytes = 24;
export const minutes = 4;
export const nameBytes = 24;
/** Of an address at one processor: bytes by direction and volume, packets by direction and kind, then the minutes. */
export const kindWords = 16;
export const volumes = 4;
const packetsAt = 2 * volumes * 8;
const minutesAt = packetsAt + 2 * kindWords * 4;
const hostMinuteBytes = 32;
export const hostBytes = minutesAt + minutes * hostMinuteBytes;
/** The same in words of four bytes and of eight. */
export const hostWords = hostBytes / 4;
export const packetsAtWord = packetsAt / 4;
export const hostLongs = hostBytes / 8;
export const minuteAtLong = minutesAt / 8;
export const hostMinuteLongs = hostMinuteBytes / 8;
/** Places of the slots of IPv4 addresses that had packets. */
export const recentPlaces = 16_384;
/** Bits of the starts of addresses: of IPv4, then of IPv6. */
const nearBits = 65_536;
export const nearBytes = (2 * nearBits) / 8;
const totalMinuteBytes = 72;
/** Behind the minutes is what the program needs to find them. */
const seenAt = minutes * totalMinuteBytes + 24;
export const totalBytes = seenAt + 40;
export const settingsBytes = 48;
export const ownerBytes = 72;
export const senderBytes = 8;
export const claimBytes = 32;
export const spoofedBytes = minutes * 16;
/** An address with more MACs is not judged, as in the engine. */
export const macsMax = 8;

/** Counters of the interface in one minute. */
export interface KernelTotals {
  packets: number;
  ipPackets: number;
  ipBytes: number;
  nonIpPackets: number;
  parserDropped: number;
  /** Frames that were merged from an unknown number of packets; each counts as one. */
  mergedFrames: number;
  /** Packets of local addresses that found no room in the kernel. */
  withoutRoom: number;
  /** Spoofed packets that found no room there. */
  spoofedPackets: number;
  spoofedBytes: number;
}

/** `enum claim` of the program: a source address of another server or of no local network, then what the content claims. */
const claims = ['', 'address', 'address', 'arp', 'neighbor', 'router', 'dhcp'] as const;

/** What a server claimed in one minute that is not its own. */
export interface SpoofedCounts {
  /** High part of its MAC with the VLAN above it, and the low part. */
  high: number;
  low: number;
  reason: Exclude<(typeof claims)[number], ''>;
  /** Of another server; blank where it claims none. */
  address: string;
  packets: number;
  bytes: number;
}

/** A MAC as a key of `senders`. */
export function senderKey(mac: string): Buffer {
  const key = Buffer.alloc(senderBytes);
  key.write(mac.replaceAll(':', ''), 'hex');
  return key;
}

/** The counters of all processors for this minute; null without a packet in it. */
export function sumSpoofed(key: Buffer, values: Buffer, cpus: number, minute: number): SpoofedCounts | null {
  const number = minute / 60;
  let packets = 0;
  let bytes = 0;
  for (let cpu = 0; cpu < cpus; cpu += 1) {
    const from = cpu * spoofedBytes + (number % minutes) * 16;
    if (values.readUInt32LE(from) !== number) continue;
    packets += values.readUInt32LE(from + 4);
    bytes += readCount(values, from + 8);
  }
  const reason = claims[key.readUInt32LE(8)];
  if (packets === 0 || !reason) return null;
  const isBlank = key.readUInt32LE(12) === 0;
  return {
    high: key.readUInt16BE(0) | (key.readUInt16LE(6) << 16),
    low: key.readInt32BE(2),
    reason,
    address: isBlank ? '' : addressOf(key.subarray(12)),
    ...{ packets, bytes },
  };
}

/** `192.0.2.1` or `2001:db8::1` as a key of `hosts` and `owners`. */
export function addressKey(address: string): Buffer {
  const { version, words } = parseWords(address);
  const key = Buffer.alloc(addressBytes);
  key.writeUInt32LE(version, 0);
  for (const [i, word] of words.entries()) key.writeInt32BE(word, 4 + i * 4);
  return key;
}

/** The address of such a key. */
export function addressOf(key: Buffer): string {
  const word = (i: number) => key.readInt32BE(4 + i * 4);
  return formatWords(key.readUInt32LE(0), word(0), word(1), word(2), word(3));
}

/** `192.0.2.0/24` as a key of `prefixes`. */
export function prefixKey(prefix: string): Buffer {
  const [address, length] = prefix.split('/');
  const key = Buffer.alloc(prefixBytes);
  addressKey(address!).copy(key, 4);
  const isIpv4 = key.readUInt32LE(4) === 4;
  key.writeUInt32LE((isIpv4 ? 128 : 32) + Number(length), 0);
  return key;
}

/** Marks the starts of the addresses of such a prefix, or of an address, in the bits of `near`. */
export function markNear(bits: Buffer, address: Buffer, prefixBits: number): void {
  const isIpv4 = address.readUInt32LE(0) === 4;
  const [length, used] = isIpv4 ? [16, prefixBits - 96] : [32, prefixBits];
  const half = isIpv4 ? 0 : nearBits / 8;
  // Of a wide prefix of IPv6 every folded start may be.
  if (!isIpv4 && used < 16) {
    bits.fill(0xff, half);
    return;
  }
  const first = address.readUInt32LE(isIpv4 ? 16 : 4);
  const spread = 2 ** Math.max(0, length - used);
  for (let i = 0; i < spread; i += 1) {
    // The first bytes of an address are the low ones of its word.
    const own = isIpv4 ? swap(first, 2) + i : swap(first, 4) + i;
    const word = swap(own, length / 8);
    const start = (isIpv4 ? word : word ^ (word >>> 16)) & 0xffff;
    bits[half + (start >>> 3)]! |= 1 << (start & 7);
  }
}

/** The low bytes in the opposite order. */
function swap(word: number, bytes: number): number {
  let swapped = 0;
  for (let i = 0; i < bytes; i += 1) swapped = swapped * 256 + ((word >>> (i * 8)) & 255);
  return swapped;
}

/** MACs as a value of `owners`. */
export function ownerValue(macs: readonly string[]): Buffer {
  const value = Buffer.alloc(ownerBytes);
  value.writeBigUInt64LE(BigInt(macs.length), 0);
  for (const [i, mac] of macs.entries()) value.write(mac.replaceAll(':', ''), 8 + i * 8, 'hex');
  return value;
}

export interface KernelSettings {
  /** Wall time minus the monotonic clock, and the monotonic time of the last sign of life; nanoseconds. */
  wallOffset: bigint;
  beat: bigint;
  /** Monotonic time since which every frame was counted by local address, nanoseconds; 0 before the first addresses. */
  since: bigint;
  isEthernet: boolean;
  hasPrefixes4: boolean;
  hasPrefixes6: boolean;
  hasOwners: boolean;
  /** Counts kinds of packets for the detector. */
  countsKinds: boolean;
  /** Slots of addresses that there are. */
  slots: number;
}

export function settingsValue(settings: KernelSettings): Buffer {
  const value = Buffer.alloc(settingsBytes);
  value.writeBigInt64LE(settings.wallOffset, 0);
  value.writeBigInt64LE(settings.beat, 8);
  value.writeBigInt64LE(settings.since, 16);
  const { isEthernet, hasPrefixes4, hasPrefixes6, hasOwners, countsKinds } = settings;
  const flags = [isEthernet, hasPrefixes4, hasPrefixes6, hasOwners, countsKinds];
  for (const [i, flag] of flags.entries()) value.writeUInt32LE(flag ? 1 : 0, 24 + i * 4);
  value.writeUInt32LE(settings.slots, 44);
  return value;
}

export function readSettings(value: Buffer): KernelSettings {
  const flag = (i: number) => value.readUInt32LE(24 + i * 4) !== 0;
  return {
    wallOffset: value.readBigInt64LE(0),
    beat: value.readBigInt64LE(8),
    since: value.readBigInt64LE(16),
    isEthernet: flag(0),
    hasPrefixes4: flag(1),
    hasPrefixes6: flag(2),
    hasOwners: flag(3),
    countsKinds: flag(4),
    slots: value.readUInt32LE(44),
  };
}

/** The counters of the interface in a minute (seconds since 1970), of all processors. */
export function sumTotals(values: Buffer, cpus: number, minute: number): KernelTotals {
  const number = minute / 60;
  const sums: KernelTotals = {
    ...{ mergedFrames: 0, packets: 0, ipPackets: 0, ipBytes: 0, nonIpPackets: 0, parserDropped: 0 },
    ...{ withoutRoom: 0, spoofedPackets: 0, spoofedBytes: 0 },
  };
  for (let cpu = 0; cpu < cpus; cpu += 1) {
    const from = cpu * totalBytes + (number % minutes) * totalMinuteBytes;
    if (values.readUInt32LE(from) !== number) continue;
    sums.mergedFrames += values.readUInt32LE(from + 4);
    for (const [i, name] of totalNames.entries()) sums[name] += readCount(values, from + 8 + i * 8);
  }
  return sums;
}

/** In the order of the program, behind the number of merged frames. */
const totalNames = [
  ...(['packets', 'ipPackets', 'ipBytes', 'nonIpPackets', 'parserDropped', 'withoutRoom'] as const),
  ...(['spoofedPackets', 'spoofedBytes'] as const),
];

/** What the kernel counted since its program was attached. */
export type SeenTotals = Pick<
  KindReading,
  'packets' | 'bytes' | 'foreignPackets' | 'foreignBytes' | 'leftOut'
>;

/** The same of all processors. */
export function sumSeen(values: Buffer, cpus: number): SeenTotals {
  const sums = [0, 0, 0, 0, 0];
  for (let cpu = 0; cpu < cpus; cpu += 1)
    for (let i = 0; i < sums.length; i += 1) sums[i]! += readCount(values, cpu * totalBytes + seenAt + i * 8);
  const [packets, bytes, foreignPackets, foreignBytes, leftOut] = sums as [
    number,
    number,
    number,
    number,
    number,
  ];
  return { packets, bytes, foreignPackets, foreignBytes, leftOut };
}

/** Below 2^53 as a counter of one minute is. */
function readCount(values: Buffer, at: number): number {
  return values.readUInt32LE(at) + values.readUInt32LE(at + 4) * 2 ** 32;
}
