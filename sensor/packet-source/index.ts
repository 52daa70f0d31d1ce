/**
 * Packet input: frames from a live interface or from a replayed capture file.
 *
 * Live frames come through a ring shared with the kernel. When its library can not be loaded, or a setting demands it,
 * they come from a `tcpdump` process, and `fallback` gives the reason.
 */
export { loadRing, openSource, type SourceSpec } from './open-source.ts';
export type { CaptureMethod, ObserveFrame, PacketSource } from './packet-source.ts';
