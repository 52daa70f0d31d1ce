/**
 * Packet I/O: frames from a live interface, or from a capture file that is played again.
 *
 * Live frames come through a ring that is shared with the kernel; where its library can't be loaded, or a setting says
 * so, out of a `tcpdump` child, and the answer says why.
 */
export {
  type CaptureMethodSetting,
  loadRing,
  type OpenedSource,
  openSource,
  type SourceSpec,
} from './open-source.ts';
export type { CaptureMethod, ObserveFrame, PacketSource } from './packet-source.ts';
