/** What one scan is, how far it is, and what it found. */

import type { Clock } from '#common/clock/index.ts';
import type {
  ScanNote,
  ScanPhase,
  ScanProfile,
  ScanService,
  ScanTransport,
} from '#contracts/port-scan/index.ts';
import type { ScanPause, ScanStep } from '#contracts/sensor-api/port-scans.ts';

/** One address to scan, checked: canonical text, and a source address of the same family. */
export interface ScanTask {
  scanId: string;
  address: string;
  /** The host's interface that probes leave by. */
  interfaceName: string;
  sourceAddress: string;
  profile: ScanProfile;
}

/** An open port, as the scanner reports it while the scan runs. */
export interface OpenPort {
  transport: ScanTransport;
  port: number;
}

export interface ScanProgress {
  step: ScanStep;
  /** Of this step. */
  percent: number;
  open: OpenPort[];
  pausedFor: ScanPause | null;
  /** Sent on the wire so far. */
  packets: number;
}

/** The part of a result that says what was found. */
export interface ScanFindings {
  profile: ScanProfile;
  state: 'complete' | 'partial';
  started_at: string;
  finished_at: string;
  phases: ScanPhase[];
  services: ScanService[];
  notes: ScanNote[];
  packets: number;
  pauses: { reason: ScanPause; started_at: string; ended_at: string }[];
}

/** Why a scan ends before its time. */
export type EndReason = Extract<ScanNote, 'interrupted' | 'withdrawn' | 'host_pressure'>;

/** A scan that runs. */
export interface RunningScan {
  /** Resolves when everything of it has ended; never rejects. */
  readonly findings: Promise<ScanFindings>;
  /** A sentence for people about the first fault, such as a program that did not start; null without one. */
  fault(): string | null;
  /** Characters of servers' answers that nmap wrote although XML forbids them. */
  replacedCharacters(): number;
  progress(): ScanProgress;
  /** Stops the probes; the same processes go on after `resume`. */
  pause(reason: ScanPause): void;
  resume(): void;
  /** Ends it; what was found stays, and the result is partial. */
  end(reason: EndReason): void;
}

// Times of one scan: they begin at the wall clock, and later steps of that do not reach them.

/** Returns the wall time of now plus what has passed since, so that no scan ends before it began. */
export function startSteadyTime(clock: Clock): () => string {
  const offsetMs = clock.nowMs() - clock.monotonicMs();
  return () => new Date(offsetMs + clock.monotonicMs()).toISOString();
}
