/** Frames of one interface, live, through a zero-copy ring. It needs CAP_NET_RAW. */
import { CodedError } from '#common/errors/index.ts';
import { createPacketRing } from './packet-ring.ts';
import { openPacketSocket } from './packet-socket.ts';
import type { PacketSource } from './packet-source.ts';

/** A frame of 64 KiB, as receive offload makes them, has to fit in a block several times over. */
const blockBytes = 1024 * 1024;
/** The median wait of a frame in a quiet ring is half of this. */
const retireMs = 40;
/** Holds any ordinary frame whole, and the hello or the request of a merged one. */
const snapBytes = 4096;

export interface LiveSourceOptions {
  interfaceName: string;
  ringMiB: number;
}

/** Starts to listen on an interface. Throws a `CodedError` that says what is missing. */
export function openLiveSource(options: LiveSourceOptions): PacketSource {
  const blockCount = options.ringMiB;
  const socket = openPacketSocket({
    interfaceName: options.interfaceName,
    blockBytes,
    blockCount,
    retireMs,
    snapBytes,
  });
  const ring = createPacketRing(socket.memory, blockBytes, blockCount);
  return {
    linkType: socket.linkType,
    poll(timeoutMs, observe) {
      if (ring.drain(observe) > 0) return;
      if (!socket.wait(timeoutMs)) {
        ring.drain(observe);
        throw new CodedError('capture.interface_gone', `Interface ${options.interfaceName} is gone.`);
      }
      ring.drain(observe);
    },
    takeDropped: () => socket.takeDropped(),
    close: () => socket.close(),
  };
}
