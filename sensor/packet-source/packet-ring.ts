/**
 * Reads a TPACKET_V3 ring: blocks filled by the kernel, frame by frame, without copies.
 *
 * The ring is one `ArrayBuffer` over memory shared with the kernel. A block belongs to this program from the moment its
 * status says so until the status is written back; the kernel does not touch it in between. Offsets are checked before
 * use: they come from the kernel, but a wrong one would read beyond the mapping.
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
/** Byte offsets in `virtio_net_hdr`, which is followed by the frame. */
const offloadHeaderBytes = 10;
const offloadFlags = 0;
const offloadType = 1;
const offloadSegment = 4;
const offloadChecksumStart = 6;
const flagNeedsChecksum = 1;
const typeUdp = 5;
const typeMask = 0x7f;

const statusKernel = 0;
const statusUser = 1;
const statusVlanValid = 0x10;

export type PacketRing = ReturnType<typeof createPacketRing>;

export interface PacketRingOptions {
  memory: ArrayBuffer;
  blockBytes: number;
  blockCount: number;
  /** The kernel puts an offload header before each frame. */
  hasOffloadHeader: boolean;
  /** Without that header, a longer frame must be a merged one. */
  frameBytesMax: number;
}

/** Creates a reader, which starts at the ring's first block. */
export function createPacketRing(options: PacketRingOptions) {
  const { memory, blockBytes, blockCount, hasOffloadHeader, frameBytesMax } = options;
  const bytes = new Uint8Array(memory);
  const words = new Int32Array(memory);
  const view = new DataView(memory);
  let block = 0;

  /** Number of packets that were merged into a frame; 0 when the header does not say. */
  const segmentsOf = (data: number, captured: number, length: number): number => {
    if (!hasOffloadHeader) return length > frameBytesMax ? 0 : 1;
    const header = data - offloadHeaderBytes;
    const type = bytes[header + offloadType]! & typeMask;
    if (type === 0) return 1;
    const size = view.getUint16(header + offloadSegment, true);
    // The checksum range of a merged frame starts at its innermost transport header.
    if ((bytes[header + offloadFlags]! & flagNeedsChecksum) === 0 || size === 0) return 0;
    const transport = view.getUint16(header + offloadChecksumStart, true);
    if (transport + 13 > captured) return 0;
    const headerBytes = type === typeUdp ? 8 : (bytes[data + transport + 12]! >> 4) * 4;
    return Math.max(1, Math.ceil((length - transport - headerBytes) / size));
  };

  const drainBlock = (start: number, observe: ObserveFrame): number => {
    const packets = view.getUint32(start + blockPackets, true);
    const end = start + blockBytes;
    let frame = start + view.getUint32(start + blockFirstPacket, true);
    let handed = 0;
    while (handed < packets) {
      if (frame + frameHeaderBytes > end) break;
      const data = frame + view.getUint16(frame + frameMac, true);
      const captured = view.getUint32(frame + frameCaptured, true);
      if (data < frame + frameHeaderBytes + (hasOffloadHeader ? offloadHeaderBytes : 0)) break;
      if (data + captured > end) break;
      const length = view.getUint32(frame + frameLength, true);
      const hasVlan = (view.getUint32(frame + frameStatus, true) & statusVlanValid) !== 0;
      observe(
        bytes,
        data,
        captured,
        length,
        view.getUint32(frame + frameSeconds, true),
        view.getUint32(frame + frameNanoseconds, true),
        hasVlan ? view.getUint32(frame + frameVlanTci, true) & 0xffff : -1,
        segmentsOf(data, captured, length),
      );
      handed += 1;
      const next = view.getUint32(frame + frameNext, true);
      if (next === 0) break;
      frame += next;
    }
    return handed;
  };

  return {
    /**
     * Passes all frames of all filled blocks to `observe` and returns the blocks to the kernel. Returns the number of
     * frames.
     */
    drain(observe: ObserveFrame): number {
      let frames = 0;
      // At most one round, so that a flood does not keep the caller from closing minutes.
      for (let round = 0; round < blockCount; round += 1) {
        const start = block * blockBytes;
        const statusWord = (start + blockStatus) >> 2;
        // Atomic: frames must be read after the status, and the block returned after its frames were read.
        if ((Atomics.load(words, statusWord) & statusUser) === 0) break;
        frames += drainBlock(start, observe);
        Atomics.store(words, statusWord, statusKernel);
        block = (block + 1) % blockCount;
      }
      return frames;
    },
  };
}
