/**
 * Remembers in fixed memory which ends of which flows have sent, for 20 to 40 seconds of capture time.
 *
 * Two bit maps of keyed hashes: the current one and the one before. A one-way packet looks two-way with the probability
 * of a set bit, so the caller keeps floods out; a two-way packet never looks one-way because of others.
 */
import type { Packet } from '../decode/packet.ts';
import { mixEnd, mixPair, mixSix } from '../flows/flow-hash.ts';

/** Bits of one map, a power of two: 512 KiB. */
const bitsPerMap = 1 << 22;
const secondsPerMap = 20;

export class FlowMemory {
  #current = new Int32Array(bitsPerMap >>> 5);
  #before = new Int32Array(bitsPerMap >>> 5);
  #turnedAt = 0;

  has(hash: number): boolean {
    const at = (hash & (bitsPerMap - 1)) >>> 5;
    return (((this.#current[at]! | this.#before[at]!) >>> (hash & 31)) & 1) === 1;
  }

  add(hash: number): void {
    const at = (hash & (bitsPerMap - 1)) >>> 5;
    this.#current[at] = this.#current[at]! | (1 << (hash & 31));
  }

  /** Forgets what is older than two maps. Called at the start of a second. */
  turn(second: number): void {
    const age = second - this.#turnedAt;
    if (age < secondsPerMap) return;
    this.#turnedAt = second;
    const cleared = this.#before;
    this.#before = this.#current;
    this.#current = cleared;
    cleared.fill(0);
    if (age >= 2 * secondsPerMap) this.#before.fill(0);
  }
}

/** Hash of the packet's flow from its source to its target; `isReverse` for the opposite direction. */
export function hashDirection(p: Packet, isReverse: boolean, key: readonly [number, number]): number {
  const { source3, target3, sourcePort, targetPort } = p;
  let hash = isReverse ? mixPair(target3, source3, key[0]) : mixPair(source3, target3, key[0]);
  if (p.version === 6) {
    const { source0, source1, source2, target0, target1, target2 } = p;
    hash = isReverse
      ? mixSix(hash, target0, target1, target2, source0, source1, source2)
      : mixSix(hash, source0, source1, source2, target0, target1, target2);
  }
  const ports = isReverse ? (targetPort << 16) | sourcePort : (sourcePort << 16) | targetPort;
  return mixEnd(hash, ports, p.protocol | (p.version << 8), key[1]);
}
