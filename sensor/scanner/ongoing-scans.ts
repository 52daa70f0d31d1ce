/**
 * The scans that run: begun only once the ledger has them, paused and ended together, and their results stored.
 *
 * A result that the disk refuses is kept and tried again with the next heartbeats.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { scanServicesMax } from '#contracts/port-scan/index.ts';
import type {
  ScanHeartbeat,
  ScanPause,
  ScanPlan,
  ScanPool,
  ScanResult,
  ScanStarted,
  ScanTarget,
} from '#contracts/sensor-api/port-scans.ts';
import type { ChosenScan } from './choose-scans.ts';
import type { Ledger } from './ledger.ts';
import { OpenPorts } from './open-ports.ts';
import type { ReportSender } from './report-sender.ts';
import {
  type EndReason,
  type RunningScan,
  type ScanFindings,
  type ScanProgress,
  type ScanTask,
  startSteadyTime,
} from './scan.ts';

/** Captures know a scan's traffic as the sensor's own before its first packet. */
const markMs = 300;
/** Answers to the last probes come after the scan; they are its traffic too. */
const lingerMs = 3000;

/** A pair of addresses whose traffic is the sensor's own. */
export interface OwnTraffic {
  sourceAddress: string;
  address: string;
}

/** Starts the processes of scans. */
export interface Scanner {
  start(task: ScanTask): RunningScan;
  close(): Promise<void>;
}

interface OngoingScansDeps {
  clock: Clock;
  reporter: Reporter;
  ledger: Ledger;
  sender: ReportSender;
  scanner: Scanner;
  /** Traffic of the sensor's own from now on; said before the first probe and some time after the last. */
  onOwnTraffic(pairs: readonly OwnTraffic[]): void;
  /** A scan ended, and its place is free. */
  onEnded(): void;
}

export class OngoingScans {
  readonly #deps: OngoingScansDeps;
  readonly #ongoing = new Map<string, OngoingScan>();
  readonly #lingering = new Set<OwnTraffic>();
  /** Results that wait for the disk. */
  readonly #unstored: ScanResult[] = [];
  #pause: ScanPause | null = null;

  constructor(deps: OngoingScansDeps) {
    this.#deps = deps;
  }

  status() {
    return [...this.#ongoing.values()].map((one) => one.status());
  }

  /** Which places of pools and which addresses are taken. */
  running(): { pool: ScanPool; address: string }[] {
    return [...this.#ongoing.values()].map(({ pool, target }) => ({ pool, address: target.address }));
  }

  /** Starts a scan, unless its id was used or withdrawn. Throws where the ledger can not be written. */
  begin(plan: ScanPlan, chosen: ChosenScan, signal: AbortSignal): void {
    const { clock, reporter, ledger, sender, scanner } = this.#deps;
    const scanId = chosen.requestId ?? randomUUID();
    const one = new OngoingScan(scanId, plan.revision, chosen, clock);
    if (!ledger.begin(one.started(), one.interrupted())) return;
    this.#ongoing.set(scanId, one);
    this.#sayOwnTraffic();
    void clock.wait(markMs).then(() => {
      one.run(scanner.start(one.task));
      this.pauseOrResume(this.#pause);
    });
    reporter.info('scan started', { scan: scanId, address: chosen.target.address, pool: chosen.pool });
    sender.wake();
    void one.done.then(() => this.#finish(one, signal));
  }

  /** Holds all of them for this reason, those that begin later too, or lets them go on. */
  pauseOrResume(reason: ScanPause | null): void {
    this.#pause = reason;
    for (const one of this.#ongoing.values()) {
      if (reason === null) one.resume();
      else one.pause(reason);
    }
  }

  /** Ends those that this plan withdrew, or whose target is gone, changed or forbidden by now. */
  endGone(plan: ScanPlan, targetFault: (target: ScanTarget) => string | null): void {
    const withdrawn = new Set(plan.withdrawn);
    const targets = new Map(plan.targets.map((target) => [target.target_id, target]));
    for (const one of this.#ongoing.values()) {
      const target = targets.get(one.target.target_id);
      const isSame =
        target?.address === one.target.address &&
        target.interface === one.target.interface &&
        target.source_address === one.target.source_address;
      if (!isSame || withdrawn.has(one.scanId) || targetFault(one.target) !== null) one.end('withdrawn');
    }
  }

  endAll(reason: EndReason): void {
    for (const one of this.#ongoing.values()) one.end(reason);
  }

  /** Resolves when those that run now have ended. */
  async ended(): Promise<void> {
    await Promise.all([...this.#ongoing.values()].map((one) => one.done));
  }

  /** Stores what was found so far, and says that the scans run. */
  async beat(signal: AbortSignal): Promise<void> {
    const { ledger, sender, reporter } = this.#deps;
    this.storeResults();
    for (const one of [...this.#ongoing.values()]) {
      if (signal.aborted) return;
      try {
        if (one.hasNews()) ledger.note(one.interrupted());
      } catch (error) {
        reporter.warn('what a scan found so far can not be stored', { why: describeError(error) });
      }
      await sender.offer(one.heartbeat(), signal);
    }
  }

  /** Stores results that wait. */
  storeResults(): void {
    const { ledger, sender, reporter } = this.#deps;
    try {
      while (this.#unstored.length > 0) {
        ledger.end(this.#unstored[0]!);
        this.#unstored.shift();
        sender.wake();
      }
    } catch (error) {
      const [{ scan_id: scan }] = this.#unstored as [ScanResult];
      reporter.error('a result of a scan can not be stored yet', { scan, why: describeError(error) });
    }
  }

  async #finish(one: OngoingScan, signal: AbortSignal): Promise<void> {
    const { clock, reporter } = this.#deps;
    this.#ongoing.delete(one.scanId);
    const result = one.result();
    this.#unstored.push(result);
    this.storeResults();
    this.#deps.onEnded();
    const fault = one.fault();
    const replaced = one.replacedCharacters();
    const found = { scan: one.scanId, address: one.target.address, state: result.state };
    reporter.info('scan ended', {
      ...found,
      open: result.services.length,
      ...(fault === null ? {} : { why: fault }),
      ...(replaced === 0 ? {} : { characters_replaced: replaced }),
    });
    const own = { sourceAddress: one.target.source_address, address: one.target.address };
    this.#lingering.add(own);
    await clock.wait(lingerMs, signal);
    this.#lingering.delete(own);
    this.#sayOwnTraffic();
  }

  #sayOwnTraffic(): void {
    const ongoing = [...this.#ongoing.values()].map(({ target }) => ({
      sourceAddress: target.source_address,
      address: target.address,
    }));
    this.#deps.onOwnTraffic([...ongoing, ...this.#lingering]);
  }
}

// A scan that runs, in the words of the reports about it.

class OngoingScan {
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
