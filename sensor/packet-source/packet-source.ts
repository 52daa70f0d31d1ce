/** Where frames come from: the live ring or a capture file that is played again. Used inside a worker thread. */

/** Takes one frame; the shape of `Capture.observe`. `bytes` is valid only during the call. */
export type ObserveFrame = (
  bytes: Uint8Array,
  offset: number,
  capturedLength: number,
  wireLength: number,
  seconds: number,
  nanoseconds: number,
  vlanTci: number,
  /** Packets of the wire that offload merged into this frame; 0 when nobody knows how many. */
  segments: number,
) => void;

/** How frames get here. */
export type CaptureMethod = 'ring' | 'tcpdump' | 'replay';

export interface PacketSource {
  /** Link type as numbered in capture files. */
  readonly linkType: number;
  readonly method: CaptureMethod;
  /** False: `packets` is too low where offload merges frames, because their segments can't be counted. */
  readonly countsSegments: boolean;
  /** A frame may reach us this long after it was stamped. */
  readonly settleMs: number;
  /** How long a frame that has passed may still be on its way here. */
  readonly lingerMs: number;
  /** The fanout group that others join, null when alone. */
  readonly fanoutGroup: number | null;
  /**
   * Hands over every frame that is ready, and waits up to `timeoutMs` when there is none. A ring blocks its thread
   * meanwhile, a pipe gives a promise. Throws `capture.interface_gone` when nothing will ever come again.
   */
  poll(timeoutMs: number, observe: ObserveFrame): void | Promise<void>;
  /** Packets that the kernel dropped since the last call, as far as the method can tell. */
  takeDropped(): number;
  /** Frees everything. No other call may follow. */
  close(): void;
}
