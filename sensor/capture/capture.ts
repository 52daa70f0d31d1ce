import type { AddressOwners } from './address-guard.ts';
import type { OwnScan } from './own-scans.ts';
import type { PacketTap } from './packet-tap.ts';
import type { CaptureRole, MinuteReport, WindowReport } from './reports/minute-report.ts';

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

export interface Capture {
  /**
   * Counts the frame at `offset` in `bytes`. `vlanTci` is the tag that the kernel removed from the frame, -1 for none.
   * `segments` is the number of packets that offload merged into it: 1 by default, 0 for an unknown number. Never
   * throws. Pass the same `bytes` object for frames of one buffer, because a view is made for each new object.
   */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    seconds: number,
    nanoseconds: number,
    vlanTci: number,
    segments?: number,
  ): void;
  /** Replaces the local scope; the direction of open flows is decided again. */
  setLocal(local: LocalScope): void;
  /** Keeps the traffic of the sensor's own scans apart from now on: it is no application, and the tap is not told of it. */
  setOwnScans(scans: readonly OwnScan[]): void;
  /** Passes counted packets to a tap from the open second on; null: to none. */
  setTap(tap: PacketTap | null): void;
  /** A paused tap gets its seconds, but no packets. One that goes on is asked again which flows it wants. */
  pauseTap(isPaused: boolean): void;
  /** Ends the seconds before this time (unix ms) for the tap, also without a frame. */
  turnTap(nowMs: number): void;
  /** The clock was set: the tap goes on with the second of this time, whichever came before. */
  restartTap(nowMs: number): void;
  /** Adds packets that the kernel dropped since the last call to the open minute. */
  addKernelDropped(packets: number): void;
  /** Sets when this capture began to listen (unix ms), so that `observedMs` is right for its first minute. */
  listeningSince(ms: number): void;
  /**
   * Closes every minute that ended at or before `nowMs`, oldest first. A minute without a frame gives a report of
   * zeros. A frame of a later minute also closes the open one; the next call returns its report.
   */
  closeMinutes(nowMs: number): MinuteReport[];
  /**
   * Windows that ended at or before `nowMs`, oldest first; empty without `windowMs`. The windows of a minute add up to
   * its report, except for frames that came late.
   */
  closeWindows(nowMs: number): WindowReport[];
  /** Closes everything as at `nowMs`, including the open minute (for an orderly stop). */
  closeAll(nowMs: number): MinuteReport[];
}
