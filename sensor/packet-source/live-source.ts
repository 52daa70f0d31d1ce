/** Live frames of one interface through a zero-copy ring. Needs CAP_NET_RAW. */
import { CodedError } from '#common/errors/index.ts';
import { readMtu } from './mtu.ts';
import { createPacketRing } from './packet-ring.ts';
import { openPacketSocket } from './packet-socket.ts';
import type { PacketSource } from './packet-source.ts';

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
