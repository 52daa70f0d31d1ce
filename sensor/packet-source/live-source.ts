/** Live frames of one interface through a zero-copy ring. Needs CAP_NET_RAW. */
import { CodedError } from '#common/errors/index.ts';
import { openPacketSocket } from './packet-socket.ts';
import { type ObserveFrame, type PacketSource, readMtu } from './packet-source.ts';

/** A block must hold several frames of 64 KiB, the size that receive offload makes. */
const blockBytes = 1024 * 1024;
/** A frame in an idle ring waits half of this on average. */
const retireMs = 40;
/** Holds a complete ordinary frame, and the hello or the request of a merged one. */
const snapBytes = 4096;
/** Ethernet and two VLAN tags. */
const linkHeaderBytesMax = 14 + 8;
/** Interval to look up the interface's name: the socket is not notified of a rename. */
const presenceEveryMs = 1000;

export interface LiveSourceOptions {
  interfaceName: string;
  ringMiB: number;
  fanout?: 'new' | number | null;
  /** False: do not request the kernel's offload header. */
  wantsOffloadHeader?: boolean;
}

/** Starts listening on an interface. Throws a `CodedError` with what is missing. */
export function openLiveSource(options: LiveSourceOptions): PacketSource {
  const { interfaceName, ringMiB: blockCount } = options;
  const socket = openPacketSocket({
    interfaceName,
    blockBytes,
    blockCount,
    retireMs,
    snapBytes,
    wantsOffloadHeader: options.wantsOffloadHeader ?? true,
    fanout: options.fanout ?? null,
  });
  const { memory, hasOffloadHeader } = socket;
  const frameBytesMax = readMtu(interfaceName) + linkHeaderBytesMax;
  const ring = createPacketRing({ memory, blockBytes, blockCount, hasOffloadHeader, frameBytesMax });
  /** A full ring drops packets until it is read, so the state at the previous look counts too. */
  let wasFullBefore = false;
  let refused = 0;
  let lookedAtMs = performance.now();

  function requirePresence(): void {
    const now = performance.now();
    if (now - lookedAtMs < presenceEveryMs) return;
    lookedAtMs = now;
    if (!socket.isPresent()) throw gone(interfaceName);
  }

  return {
    linkType: socket.linkType,
    method: 'ring',
    countsSegments: hasOffloadHeader,
    fanoutGroup: socket.fanoutGroup,
    settleMs: 1000,
    lingerMs: retireMs * 3,
    poll(timeoutMs, observe) {
      requirePresence();
      if (refused > 0) throw headerRefused(interfaceName, refused);
      if (ring.drain(observe) > 0) return;
      const isThere = socket.wait(timeoutMs);
      ring.drain(observe);
      if (!isThere) throw gone(interfaceName);
    },
    takeDropped() {
      const { packets, wasFull } = socket.takeDropped();
      // With room in the ring the kernel drops only packets that the header can not describe (merged UDP before Linux
      // 6.2).
      if (hasOffloadHeader && !wasFull && !wasFullBefore) refused = packets;
      wasFullBefore = wasFull;
      return packets;
    },
    close: () => socket.close(),
  };
}

function headerRefused(interfaceName: string, packets: number): CodedError {
  return new CodedError(
    'capture.offload_header',
    `The kernel dropped ${packets} merged packets on ${interfaceName} that its offload header can not describe; ` +
      'from now on merged packets are counted as one.',
  );
}

function gone(interfaceName: string): CodedError {
  return new CodedError(
    'capture.interface_gone',
    `Interface ${interfaceName} is gone or has another name; capture resumes when it is back.`,
  );
}

// Reads a TPACKET_V3 ring: blocks filled by the kernel, frame by frame, without copies.
//
// The ring is one `ArrayBuffer` over memory shared with the kernel. A block belongs to this program from the moment its
// status says so until the status is written back; the kernel does not touch it in between. Offsets are checked before
// use: they come from the kernel, but a wrong one would read beyond the mapping.

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
