/**
 * The maps of `filter.bpf.c` in bytes: the same structures, in the byte order of the processor (little endian on all that the sensor runs
 * on). Addresses and ports are as in a packet; an IPv4 address is ::ffff:a.b.c.d.
 */
import { formatAddress, parseAddress } from '#common/ip/index.ts';
import type { AttackClass } from '#contracts/attack-classes.ts';
import type { AttackDirection } from '#contracts/incidents.ts';
import { filterRulesOfAddress, type PacketMatch } from '#contracts/sensor-api/filter.ts';
import type { DroppedCounters } from '#contracts/sensor-api/telemetry.ts';

/** Names of the maps. */
export const filterMaps = ['settings', 'rules', 'counts', 'dropped', 'openings', 'pairs'] as const;
export type FilterMap = (typeof filterMaps)[number];

export const filterAddressBytes = 16;
export const filterSettingsBytes = 24;
const minutes = 4;
const droppedMinuteBytes = 40;
/** Addresses with counters of what is dropped. */
export const droppedAddresses = 1024;
export const droppedBytes = minutes * droppedMinuteBytes;
export const countBytes = 48;
export const slots = 512;
const portsMax = 8;
const ruleBytes = 128;
export const rulesBytes = filterRulesOfAddress * ruleBytes;
const noPort = 0xffff_ffff;
const never = 0x7fff_ffff_ffff_ffffn;

/** What to drop, or to count as what would be dropped. Times are unix milliseconds. */
export interface FilterRule {
  /** A canonical address of this host's servers. */
  target: string;
  /** Of the attack: on the target, or by it. */
  direction: AttackDirection;
  class: AttackClass;
  match: PacketMatch;
  /** Pairs of addresses that were established before pass. */
  beganAtMs: number;
  /** It counts until then; null: it drops nothing. */
  dropsAtMs: number | null;
  endsAtMs: number;
}

/** What a rule did in some time. */
export interface FilterCounts {
  /** What it matched and no established pair carried: dropped, or what would be. */
  matched: FilterAmount;
  dropped: FilterAmount;
  /** What established pairs carried. */
  passed: FilterAmount;
}

export interface FilterAmount {
  packets: number;
  bytes: number;
}

export function filterAddress(address: string): Buffer {
  const bytes = parseAddress(address)!;
  const key = Buffer.alloc(filterAddressBytes);
  if (bytes.length === 4) key.writeUInt16BE(0xffff, 10);
  key.set(bytes, filterAddressBytes - bytes.length);
  return key;
}

/** The address of such a key. */
export function filteredAddress(key: Buffer): string {
  const isIpv4 = key.readBigUInt64BE(0) === 0n && key.readUInt32BE(8) === 0xffff;
  return formatAddress(key.subarray(isIpv4 ? 12 : 0));
}

/** Rules of one address; `toMonotonic`: nanoseconds of the clock of the kernel. */
export function rulesValue(
  rules: readonly { rule: FilterRule; slot: number }[],
  toMonotonic: (ms: number) => bigint,
): Buffer {
  const value = Buffer.alloc(rulesBytes);
  for (const [i, { rule, slot }] of rules.entries()) {
    const { match } = rule;
    const at = i * ruleBytes;
    value.writeBigUInt64LE(toMonotonic(rule.beganAtMs), at);
    value.writeBigUInt64LE(rule.dropsAtMs === null ? never : toMonotonic(rule.dropsAtMs), at + 8);
    value.writeBigUInt64LE(toMonotonic(rule.endsAtMs), at + 16);
    if (match.protocols.length === 0) value.fill(0xff, at + 24, at + 56);
    for (const protocol of match.protocols) value[at + 24 + (protocol >> 3)]! |= 1 << (protocol & 7);
    value.writeBigUInt64LE(BigInt(match.length_min), at + 56);
    value.writeBigUInt64LE(BigInt(match.length_max), at + 64);
    for (let port = 0; port < portsMax; port += 1)
      value.writeUInt32LE(match.source_ports[port] ?? noPort, at + 72 + port * 4);
    const flags = [match.source_ports.length > 0 ? 1 : 0, match.flags_set, match.flags_clear];
    const rest = [match.only_fragments ? 1 : 0, slot, rule.direction === 'outbound' ? 1 : 0];
    for (const [j, word] of [...flags, ...rest].entries()) value.writeUInt32LE(word, at + 104 + j * 4);
  }
  return value;
}

const noAmount: FilterAmount = { packets: 0, bytes: 0 };
export const noCounts: FilterCounts = { matched: noAmount, dropped: noAmount, passed: noAmount };

export function lessCounts(counts: FilterCounts, before: FilterCounts): FilterCounts {
  const less = (name: keyof FilterCounts): FilterAmount => ({
    packets: counts[name].packets - before[name].packets,
    bytes: counts[name].bytes - before[name].bytes,
  });
  return { matched: less('matched'), dropped: less('dropped'), passed: less('passed') };
}

/** The sum of the values of all processors. */
export function sumCounts(values: Buffer): FilterCounts {
  const sums = [0, 0, 0, 0, 0, 0];
  for (let at = 0; at < values.length; at += 8) sums[(at / 8) % 6]! += Number(values.readBigUInt64LE(at));
  const amount = (i: number): FilterAmount => ({ packets: sums[i]!, bytes: sums[i + 1]! });
  return { matched: amount(0), dropped: amount(2), passed: amount(4) };
}

/** What all processors dropped of an address in this minute (seconds since 1970); null where they dropped nothing. */
export function sumDropped(values: Buffer, minute: number): DroppedCounters | null {
  const number = minute / 60;
  const sums = [0, 0, 0, 0];
  for (let at = (number % minutes) * droppedMinuteBytes; at < values.length; at += droppedBytes)
    if (Number(values.readBigUInt64LE(at)) === number)
      for (let i = 0; i < sums.length; i += 1) sums[i]! += Number(values.readBigUInt64LE(at + 8 + i * 8));
  const [rxPackets, txPackets, rxBytes, txBytes] = sums as [number, number, number, number];
  return rxPackets + txPackets === 0 ? null : { rxPackets, txPackets, rxBytes, txBytes };
}
