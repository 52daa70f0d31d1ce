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
) => void;

export interface PacketSource {
  /** Link type as numbered in capture files. */
  readonly linkType: number;
  /**
   * Hands over every frame that is ready, and waits up to `timeoutMs` when there is none. It blocks its thread.
   * Throws `capture.interface_gone` when nothing will ever come again.
   */
  poll(timeoutMs: number, observe: ObserveFrame): void;
  /** Packets that the kernel dropped since the last call. */
  takeDropped(): number;
  /** Frees everything. No other call may follow. */
  close(): void;
}
