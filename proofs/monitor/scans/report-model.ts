/**
 * What a monitor has to answer to one sensor's reports in their order, and what it has to keep of them, as a plain account:
 * each report is looked at once, and open ports are kept in a map.
 */
import type { ScanReport, ScanResult } from '#contracts/sensor-api/port-scans.ts';

const weekMs = 7 * 86_400_000;

/** An open port as it has to be stored; times are unix milliseconds. */
export interface ModelPort {
  firstMs: number;
  observedMs: number;
  closedMs: number | null;
  scanId: string;
  product: string | null;
  version: string | null;
}

interface ModelScan {
  target: string;
  hasStarted: boolean;
  heartbeatMs: number;
  result: ScanResult | null;
}

export class ReportModel {
  readonly #targets: ReadonlySet<string>;
  readonly scans = new Map<string, ModelScan>();
  /** By `target profile transport/port`. */
  readonly ports = new Map<string, ModelPort>();

  constructor(targets: readonly string[]) {
    this.#targets = new Set(targets);
  }

  /** The right answer; takes the report in when that is `accepted`. */
  take(report: ScanReport, nowMs: number): string {
    if (report.scan_request_id !== null && report.scan_request_id !== report.scan_id)
      return '422 scan_report_malformed';
    if (!this.#targets.has(report.target_id)) return '422 scan_target_unknown';
    const known = this.scans.get(report.scan_id);
    if (known && known.target !== report.target_id) return '422 scan_report_malformed';
    const scan = known ?? { target: report.target_id, hasStarted: false, heartbeatMs: 0, result: null };
    if (scan.result) return 'duplicate';
    const atMs = Math.min(Date.parse(report.at), nowMs);
    if (report.kind === 'started') {
      if (scan.hasStarted) return 'duplicate';
      scan.hasStarted = true;
    } else if (report.kind === 'heartbeat') {
      if (atMs <= scan.heartbeatMs) return 'duplicate';
      scan.heartbeatMs = atMs;
    } else {
      scan.result = report;
      this.#open(report, nowMs);
      if (report.state === 'complete') this.#close(report, nowMs);
    }
    this.scans.set(report.scan_id, scan);
    return 'accepted';
  }

  #open(report: ScanResult, nowMs: number): void {
    // Of a port that is named twice the last one counts.
    const last = new Map(report.services.map((one) => [`${one.transport}/${one.port}`, one]));
    for (const [port, one] of last) {
      const observedMs = Math.min(Date.parse(one.observed_at), nowMs);
      const firstMs = Math.min(Date.parse(one.first_observed_at), observedMs);
      if (observedMs <= nowMs - weekMs) continue;
      const key = `${report.target_id} ${report.profile} ${port}`;
      const held = this.ports.get(key);
      if (held && observedMs < Math.max(held.observedMs, held.closedMs ?? 0)) continue;
      const goesOn = held && held.closedMs === null && held.observedMs > nowMs - weekMs;
      this.ports.set(key, {
        ...{ observedMs, closedMs: null, scanId: one.scan_id },
        firstMs: goesOn ? Math.min(held.firstMs, firstMs) : firstMs,
        product: clean(one.product),
        version: clean(one.version),
      });
    }
  }

  #close(report: ScanResult, nowMs: number): void {
    const startedMs = Date.parse(report.started_at);
    const endedMs = Math.max(startedMs, Date.parse(report.finished_at));
    const phases = new Map(report.phases.map((phase) => [phase.transport, phase.finished]));
    const open = new Set(report.services.map((one) => `${one.transport}/${one.port}`));
    for (const [key, held] of this.ports) {
      const [target, profile, port] = key.split(' ') as [string, string, string];
      const isAsked = phases.get(port.startsWith('tcp') ? 'tcp' : 'udp') === true;
      if (target !== report.target_id || profile !== report.profile || !isAsked || open.has(port)) continue;
      if (held.closedMs === null && held.observedMs < startedMs) held.closedMs = Math.min(endedMs, nowMs);
    }
  }
}

/** As it may be stored and shown: no control characters, no marks of direction, no half characters. */
function clean(text: string | null): string | null {
  if (text === null) return null;
  const isBad = (code: number) =>
    code < 32 ||
    (code >= 0x7f && code <= 0x9f) ||
    (code >= 0xd800 && code <= 0xdfff) ||
    [0x200e, 0x200f].includes(code) ||
    (code >= 0x202a && code <= 0x202e) ||
    (code >= 0x2066 && code <= 0x2069);
  const kept = [...text]
    .map((one) => (isBad(one.codePointAt(0)!) ? ' ' : one))
    .join('')
    .trim();
  return kept === '' ? null : kept;
}
