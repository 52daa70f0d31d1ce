/** Packet I/O: frames from a live interface, or from a capture file that is played again. */
export { openSource, type SourceSpec } from './open-source.ts';
export type { ObserveFrame, PacketSource } from './packet-source.ts';
