/**
 * Finds packets that a capture of all interfaces recorded more than once: as they passed a guest's port, a bridge and the uplink. The
 * first interface on which a packet is seen is the one that counts.
 *
 * A packet is known again by its bytes but for what routers change. Two generations of as many packets are remembered.
 */
import type { CaptureFile } from '#sensor/capture-files/index.ts';

/** Linux cooked capture, version 2: the interface's number is at 4, and the IP packet after 20 bytes. */
const cooked2 = 276;
const interfaceAt = 4;
const headerBytes = 20;
const comparedBytes = 64;
const rememberedPackets = 4096;

export class RepeatedPackets {
  /** Packets that were seen before on another interface. */
  count = 0;
  /** By hash, the interface on which it was first seen. */
  #now = new Map<number, number>();
  #before = new Map<number, number>();

  /** True for a packet that another interface has recorded already. */
  has({ bytes, offset, capturedLength, linkType }: CaptureFile): boolean {
    if (linkType !== cooked2 || capturedLength <= headerBytes) return false;
    const view = new DataView(bytes.buffer, bytes.byteOffset + offset, capturedLength);
    const one = view.getUint32(interfaceAt);
    const hash = hashOf(view);
    const first = this.#now.get(hash) ?? this.#before.get(hash);
    if (first !== undefined && first !== one) {
      this.count += 1;
      return true;
    }
    if (this.#now.size >= rememberedPackets) [this.#before, this.#now] = [this.#now, new Map()];
    this.#now.set(hash, one);
    return false;
  }
}

/** FNV-1a over the beginning of the IP packet, without hop limit and checksum. */
function hashOf(view: DataView): number {
  const isIpv4 = view.getUint8(headerBytes) >> 4 === 4;
  const end = Math.min(view.byteLength, headerBytes + comparedBytes);
  let hash = 0x811c9dc5;
  for (let at = headerBytes; at < end; at += 1) {
    const place = at - headerBytes;
    const isChanged = isIpv4 ? place === 8 || place === 10 || place === 11 : place === 7;
    hash = Math.imul(hash ^ (isChanged ? 0 : view.getUint8(at)), 0x01000193);
  }
  return hash;
}
