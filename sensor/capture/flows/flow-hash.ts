/**
 * Finds flows: the order of a flow's two sockets, and the keyed hash over both, from a packet and from a record.
 */

import type { Packet } from '../decode/packet.ts';
import { mixHash } from '../keyed-table.ts';
import { Field } from './flow-record.ts';

/** True when the packet's source is the lower of its two sockets. */
export function sourceIsLower(p: Packet): boolean {
  const { source0, source1, source2, source3, target0, target1, target2, target3 } = p;
  // Compute all of them for every packet: a branch that is first taken late would have the callers recompiled.
  const last = source3 < target3;
  const third = source2 < target2;
  const second = source1 < target1;
  const first = source0 < target0;
  const port = p.sourcePort <= p.targetPort;
  if (source3 !== target3) return last;
  if (source2 !== target2) return third;
  if (source1 !== target1) return second;
  return source0 === target0 ? port : first;
}

/** True when the record at `base` has the packet's addresses. */
export function isSamePair(words: Int32Array, base: number, p: Packet, isLower: boolean): boolean {
  const source = isLower ? base : base + 4;
  const target = isLower ? base + 4 : base;
  if (words[source + 3] !== p.source3 || words[target + 3] !== p.target3) return false;
  // An IPv4 address is in the last word only, and the version was compared.
  if (p.version === 4) return true;
  return (
    words[source] === p.source0 &&
    words[target] === p.target0 &&
    words[source + 1] === p.source1 &&
    words[source + 2] === p.source2 &&
    words[target + 1] === p.target1 &&
    words[target + 2] === p.target2
  );
}

/** Both directions have the same hash because the lower socket comes first. The key is mixed in at both ends. */
export function hashPacket(
  p: Packet,
  isLower: boolean,
  ports: number,
  meta: number,
  key0: number,
  key1: number,
): number {
  let hash = mixPair(isLower ? p.source3 : p.target3, isLower ? p.target3 : p.source3, key0);
  if (p.version === 6) {
    hash = isLower
      ? mixSix(hash, p.source0, p.source1, p.source2, p.target0, p.target1, p.target2)
      : mixSix(hash, p.target0, p.target1, p.target2, p.source0, p.source1, p.source2);
  }
  return mixEnd(hash, ports, meta, key1);
}

/** The same hash from a record. */
export function hashRecord(words: Int32Array, base: number, key0: number, key1: number): number {
  let hash = mixPair(words[base + 3]!, words[base + 7]!, key0);
  const meta = words[base + Field.meta]!;
  if (((meta >> 8) & 0xff) === 6) {
    const w = words;
    hash = mixSix(hash, w[base]!, w[base + 1]!, w[base + 2]!, w[base + 4]!, w[base + 5]!, w[base + 6]!);
  }
  return mixEnd(hash, words[base + Field.ports]!, meta, key1);
}

/** The parts of the hash. First the last words of both addresses. */
export function mixPair(lower: number, higher: number, key: number): number {
  let hash = Math.imul(lower ^ key, 0x9e3779b1);
  hash ^= hash >>> 15;
  return Math.imul(hash ^ higher, 0x85ebca6b);
}

/** The other words of the lower address, then those of the higher one. */
export function mixSix(hash: number, a: number, b: number, c: number, d: number, e: number, f: number) {
  return mixHash(mixHash(mixHash(mixHash(mixHash(mixHash(hash, a), b), c), d), e), f);
}

/** Ports of the lower address first; protocol, version and tunnel. */
export function mixEnd(start: number, ports: number, meta: number, key: number): number {
  let hash = start ^ (start >>> 13);
  hash = Math.imul(hash ^ ports, 0xc2b2ae35);
  hash ^= hash >>> 16;
  hash = Math.imul(hash ^ meta ^ key, 0x27d4eb2d);
  return hash ^ (hash >>> 15);
}
