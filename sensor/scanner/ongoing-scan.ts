/** A scan that runs, in the words of the reports about it. */
import type { Clock } from '#common/clock/index.ts';
import { scanServicesMax } from '#contracts/port-scan/index.ts';
import type {
  ScanHeartbeat,
  ScanPause,
  ScanPool,
  ScanResult,
  ScanStarted,
  ScanTarget,
} from '#contracts/sensor-api/port-scans.ts';
import type { ChosenScan } from './choose-scans.ts';
import { OpenPorts } from './open-ports.ts';
import type { EndReason, RunningScan, ScanFindings, ScanProgress, ScanTask } from './scan.ts';
import { startSteadyTime } from './steady-time.ts';

export class OngoingScan {
  readonly scanId: string;
  readonly target: ScanTarget;
  readonly pool: ScanPool;
  readonly task: ScanTask;
  /** Resolves when it has ended; its result is there then. */
  readonly done: Promise<void>;
  readonly #chosen: ChosenScan;
  readonly #revision: number;
  readonly #clock: Clock;
  readonly #now: () => string;
  readonly #startedAt: string;
  #running: RunningScan | null = null;
  #endedBefore: EndReason | null = null;
  #findings: ScanFindings | null = null;
  #finish: () => void = () => {};
  #known = 0;
  #lastPackets = 0;
  #lastBeatMs: number;

  constructor(scanId: string, revision: number, chosen: ChosenScan, clock: Clock) {
    const { target, profile, pool } = chosen;
    this.scanId = scanId;
    this.target = target;
    this.pool = pool;
    this.#chosen = chosen;
    this.#revision = revision;
    this.#clock = clock;
    this.#now = startSteadyTime(clock);
    this.#startedAt = this.#now();
    this.#lastBeatMs = clock.monotonicMs();
    this.task = {
      ...{ scanId, profile, address: target.address },
      ...{ interfaceName: target.interface, sourceAddress: target.source_address },
    };
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  run(running: RunningScan): void {
    this.#running = running;
    if (this.#endedBefore !== null) running.end(this.#endedBefore);
    void running.findings.then((findings) => {
      this.#findings = findings;
      this.#finish();
    });
  }

  pause(reason: ScanPause): void {
    this.#running?.pause(reason);
  }

  resume(): void {
    this.#running?.resume();
  }

  end(reason: EndReason): void {
    this.#endedBefore ??= reason;
    this.#running?.end(reason);
  }

  fault(): string | null {
    return this.#running?.fault() ?? null;
  }

  replacedCharacters(): number {
    return this.#running?.replacedCharacters() ?? 0;
  }

  started(): ScanStarted {
    return { kind: 'started', ...this.#attempt(), profile: this.#chosen.profile, pool: this.pool };
  }

  heartbeat(): ScanHeartbeat {
    const { step, percent, pausedFor, packets, open } = this.#progress();
    const nowMs = this.#clock.monotonicMs();
    const seconds = (nowMs - this.#lastBeatMs) / 1000;
    const rate = seconds > 0 ? (packets - this.#lastPackets) / seconds : 0;
    this.#lastBeatMs = nowMs;
    this.#lastPackets = packets;
    return {
      ...{ kind: 'heartbeat', ...this.#attempt(), phase: step, percent, paused_for: pausedFor },
      ...{ packets_per_second: Math.round(rate * 10) / 10, found: open.slice(0, scanServicesMax) },
    };
  }

  /** Whether ports were found since `interrupted` was read. */
  hasNews(): boolean {
    return (this.#running?.progress().open.length ?? 0) > this.#known;
  }

  /** The result if the sensor were killed now. */
  interrupted(): ScanResult {
    const found = new OpenPorts(this.scanId);
    const open = this.#running?.progress().open ?? [];
    for (const port of open) found.add(port, this.#now());
    this.#known = open.length;
    return {
      ...{ kind: 'result', ...this.#attempt(), profile: this.#chosen.profile, state: 'partial' },
      ...{ started_at: this.#startedAt, finished_at: this.#now(), phases: [] },
      ...{ services: found.services(), notes: ['interrupted'] },
    };
  }

  /** Only after `done`. */
  result(): ScanResult {
    return { kind: 'result', ...this.#attempt(), ...this.#findings! };
  }

  status() {
    const { step, percent, open, pausedFor } = this.#progress();
    const { profile, target } = this.#chosen;
    return { address: target.address, profile, pool: this.pool, step, percent, open: open.length, pausedFor };
  }

  #progress(): ScanProgress {
    const begin = { step: 'tcp_discovery', percent: 0, open: [], pausedFor: null, packets: 0 } as const;
    return this.#running?.progress() ?? { ...begin, open: [] };
  }

  #attempt() {
    return {
      ...{ plan_revision: this.#revision, scan_id: this.scanId, scan_request_id: this.#chosen.requestId },
      ...{ target_id: this.target.target_id, at: this.#now() },
    };
  }
}
