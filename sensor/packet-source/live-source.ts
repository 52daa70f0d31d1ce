/** Frames of one interface, live, through a zero-copy ring. It needs CAP_NET_RAW. */
import { CodedError } from '#common/errors/index.ts';
import { readMtu } from './mtu.ts';
import { createPacketRing } from './packet-ring.ts';
import { openPacketSocket } from './packet-socket.ts';
import type { PacketSource } from './packet-source.ts';

/** A frame of 64 KiB, as receive offload makes them, has to fit in a block several times over. */
const blockBytes = 1024 * 1024;
/** The median wait of a frame in a quiet ring is half of this. */
const retireMs = 40;
/** Holds any ordinary frame whole, and the hello or the request of a merged one. */
const snapBytes = 4096;
/** Ethernet and two VLAN tags. */
const linkHeaderBytesMax = 14 + 8;
/** How often the interface's name is looked up: a rename tells the socket nothing. */
const presenceEveryMs = 1000;

export interface LiveSourceOptions {
  interfaceName: string;
  ringMiB: number;
  fanout?: 'new' | number | null;
  /** False: do without the kernel's offload header. */
  wantsOffloadHeader?: boolean;
}

/** Starts to listen on an interface. Throws a `CodedError` that says what is missing. */
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
  /** A ring that was full goes on to drop until it is read, so the look before counts too. */
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
      // With room in the ring the kernel drops only what it can't describe in the header (merged UDP before Linux 6.2).
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
    `The kernel dropped ${packets} merged packets on ${interfaceName} that its offload header can't describe; ` +
      'from now on merged packets are counted as one.',
  );
}

function gone(interfaceName: string): CodedError {
  return new CodedError(
    'capture.interface_gone',
    `Interface ${interfaceName} is gone or has another name; it is listened to again when it is back.`,
  );
}
