import { readFileSync } from 'node:fs';

/** Interface of frame sources: the live ring, tcpdump, or a replayed capture file. Used inside a worker thread. */

/** Receives one frame; the signature of `Capture.observe`. `bytes` is valid only during the call. */
export type ObserveFrame = (
  bytes: Uint8Array,
  offset: number,
  capturedLength: number,
  wireLength: number,
  seconds: number,
  nanoseconds: number,
  vlanTci: number,
  /** Number of packets that offload merged into this frame; 0 when unknown. */
  segments: number,
) => void;

/** How frames are captured. */
export type CaptureMethod = 'ring' | 'tcpdump' | 'replay';

export interface PacketSource {
  /** Link type as numbered in capture files. */
  readonly linkType: number;
  readonly method: CaptureMethod;
  /** False: `packets` is too low when offload merges frames, because their segments can not be counted. */
  readonly countsSegments: boolean;
  /** Maximum delay of a frame after its timestamp. */
  readonly settleMs: number;
  /** How long passed frames may still be under way. */
  readonly lingerMs: number;
  /** The fanout group that other members join, null without fanout. */
  readonly fanoutGroup: number | null;
  /**
   * Passes every ready frame, and waits up to `timeoutMs` when there is none. A ring blocks its thread meanwhile, a
   * pipe returns a promise. Throws `capture.interface_gone` when no more frames can come.
   */
  poll(timeoutMs: number, observe: ObserveFrame): void | Promise<void>;
  /** Packets that the kernel dropped since the last call, if the method reports them. */
  takeDropped(): number;
  /** Frees everything. No other call may follow. */
  close(): void;
}

/** The interface's MTU. If it can not be read, a value so high that no frame counts as merged. */
export function readMtu(interfaceName: string): number {
  try {
    return Number(readFileSync(`/sys/class/net/${interfaceName}/mtu`, 'utf8')) || 65_536;
  } catch {
    return 65_536;
  }
}
