/**
 * Walks a TPACKET_V3 ring: blocks that the kernel has filled, frame by frame, without copying one.
 *
 * The ring is one `ArrayBuffer` over memory shared with the kernel. A block belongs to us from the moment its status
 * says so until we write the status back; the kernel never touches it in between. Offsets out of the ring are
 * checked before use: they come from the kernel, but a wrong one would read beyond the mapping.
 */
import type { ObserveFrame } from './packet-source.ts';

/** Byte offsets in `tpacket_block_desc`, after its version and private offset. */
const blockStatus = 8;
const blockPackets = 12;
const blockFirstPacket = 16;
/** Byte offsets in `tpacket3_hdr`. */
const frameNext = 0;
const frameSeconds = 4;
const frameNanoseconds = 8;
const frameCaptured = 12;
const frameLength = 16;
const frameStatus = 20;
const frameMac = 24;
const frameVlanTci = 32;
const frameHeaderBytes = 48;

const statusKernel = 0;
const statusUser = 1;
const statusVlanValid = 0x10;

export interface PacketRing {
  /** Hands over all frames of all filled blocks and gives the blocks back. Returns how many frames there were. */
  drain(observe: ObserveFrame): number;
}

/** A reader of a ring of `blockCount` blocks of `blockBytes`, which starts at its first block. */
export function createPacketRing(memory: ArrayBuffer, blockBytes: number, blockCount: number): PacketRing {
  const bytes = new Uint8Array(memory);
  const words = new Int32Array(memory);
  const view = new DataView(memory);
  let block = 0;

  const drainBlock = (start: number, observe: ObserveFrame): number => {
    const packets = view.getUint32(start + blockPackets, true);
    const end = start + blockBytes;
    let frame = start + view.getUint32(start + blockFirstPacket, true);
    let handed = 0;
    while (handed < packets) {
      if (frame + frameHeaderBytes > end) break;
      const data = frame + view.getUint16(frame + frameMac, true);
      const captured = view.getUint32(frame + frameCaptured, true);
      if (data + captured > end) break;
      const hasVlan = (view.getUint32(frame + frameStatus, true) & statusVlanValid) !== 0;
      observe(
        bytes,
        data,
        captured,
        view.getUint32(frame + frameLength, true),
        view.getUint32(frame + frameSeconds, true),
        view.getUint32(frame + frameNanoseconds, true),
        hasVlan ? view.getUint32(frame + frameVlanTci, true) & 0xffff : -1,
      );
      handed += 1;
      const next = view.getUint32(frame + frameNext, true);
      if (next === 0) break;
      frame += next;
    }
    return handed;
  };

  return {
    drain(observe) {
      let frames = 0;
      // One round at most, so that a flood can't keep the caller from closing its minutes.
      for (let round = 0; round < blockCount; round += 1) {
        const start = block * blockBytes;
        const statusWord = (start + blockStatus) >> 2;
        // Atomic, because the frames must not be read before the status, nor given back before they are read.
        if ((Atomics.load(words, statusWord) & statusUser) === 0) break;
        frames += drainBlock(start, observe);
        Atomics.store(words, statusWord, statusKernel);
        block = (block + 1) % blockCount;
      }
      return frames;
    },
  };
}
