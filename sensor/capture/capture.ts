import type { AddressOwners } from './address-guard.ts';
import type { Packet } from './decode/packet.ts';
import type { CaptureRole } from './reports/minute-report.ts';

/** Local prefixes (`192.0.2.0/24`, `2001:db8::/48`) and exact addresses, as canonical text. */
export interface LocalScope {
  prefixes: readonly string[];
  addresses: readonly string[];
  /** Who may send from which address; bridges count what others send from it as spoofed. None by default. */
  owners?: readonly AddressOwners[];
}

export interface CaptureOptions {
  /** The interface's name; also the segment of device keys. */
  name: string;
  role: CaptureRole;
  /** Link type as numbered in capture files: 1 is Ethernet. */
  linkType: number;
  /**
   * Registrable domain of a host, or null. Injected because the packet path imports no package. Called once for each
   * new name, not for each packet.
   */
  registrableDomain(host: string): string | null;
  local: LocalScope;
  /** Key of the hash tables; random by default, so that an attacker can not aim at one bucket. */
  hashKey?: readonly [number, number];
  /** Public names on the outside of encrypted hellos (ECH); the well-known ones by default. */
  outerNames?: readonly string[];
  /**
   * Fraction of one capture's tables for this one; 1 by default. Fanout members divide the limit of one capture, and
   * more than four captures divide the limit of a process (NET-8.6).
   */
  share?: number;
  /**
   * Corrects an implausible frame time. Called only for frames outside the open window; without it every time is
   * accepted.
   */
  clampTime?(seconds: number): number;
  /** Maximum number of flows; by default this capture's fraction of 32,768. */
  flowsMax?: number;
  /** Length of live windows, a divisor of a minute. Without it there are no windows. */
  windowMs?: number;
  /** Number of applications in each window, the largest first; none by default. */
  windowApplicationsMax?: number;
}

// Receives the packets that an engine counts, so that others need not decode them again.
//
// Packets of the fast path come summed, and with them others of the same flow that are counted alike: one call for each flow,
// side and second. Everything else comes one by one.

export interface PacketTap {
  /**
   * A decoded packet, which stands for `packets` merged ones; `isUnknown`: for an unknown number. The object is used
   * again for the next packet. Fragments come as they arrive, not as they are put together, and only the first says something of its flow.
   * `exchange`: what its flow was with it, as bits of `Exchange`.
   */
  packet(packet: Packet, packets: number, isUnknown: boolean, exchange: number): void;
  /** False for flows whose packets the tap does not need. Called once for each flow. */
  wantsFlow(words: Int32Array, base: number): boolean;
  /** Packets that one side (0: the lower socket) of the flow at `base` sent since the last call, with its `Exchange` now. */
  flow(words: Int32Array, base: number, side: number, packets: number, bytes: number, exchange: number): void;
  /** A later second begins. What came before belongs to earlier ones: `packets`, told or not. */
  turn(second: number, packets: number): void;
}

/** The counters of a capture. A new one is declared and started here; `docs/adding-a-record.md` names the other files. */

/** Counters of the open minute, of a live window, or of the whole file. */
export interface CaptureTotals {
  /** `ipPackets` + `nonIpPackets` + `parserDropped`, exactly. */
  packets: number;
  ipPackets: number;
  ipBytes: number;
  nonIpPackets: number;
  /** Captured but malformed or truncated (NET-2.2.6). */
  parserDropped: number;
  /** Dropped by the kernel before the parser saw them, if the source reports it. */
  kernelDropped: number;
  /** Packets whose details found no room in a bounded table; they are in all other counters. */
  detailTruncated: number;
  /** Frames that offload merged from an unknown number of packets. If there are any, `packets` is too low. */
  mergedFrames: number;
}

/** Counters at zero. */
export function emptyTotals(): CaptureTotals {
  return {
    packets: 0,
    ipPackets: 0,
    ipBytes: 0,
    nonIpPackets: 0,
    parserDropped: 0,
    kernelDropped: 0,
    detailTruncated: 0,
    mergedFrames: 0,
  };
}
