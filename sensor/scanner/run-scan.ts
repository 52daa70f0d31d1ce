/**
 * One scan: discovery of TCP, then of UDP, then identification of what is open, each by nmap processes of its own inside
 * one set of limits.
 *
 * It never rejects. Also when it ends early, the result has what was found so far; it is complete only when every phase ended by
 * itself (NET-3.1).
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { transports } from '#contracts/ip-protocols.ts';
import { portsAsked, type ScanNote, type ScanPhase, type ScanTransport } from '#contracts/port-scan/index.ts';
import type { ScanPause } from '#contracts/sensor-api/port-scans.ts';
import type { Enclosure, ScanLimits } from './limits/index.ts';
import { discoveryArguments, identificationArguments } from './nmap-arguments.ts';
import { OpenPorts } from './open-ports.ts';
import type { Pace, Pacer } from './pacing/index.ts';
import type { NmapOutcome, NmapRun, runNmap } from './run-nmap.ts';
import {
  type EndReason,
  type RunningScan,
  type ScanFindings,
  type ScanProgress,
  type ScanTask,
  startSteadyTime,
} from './scan.ts';

const pausesMax = 256;
const tickMs = 1000;

interface ScanDeps {
  clock: Clock;
  limits: ScanLimits;
  pacer: Pacer;
  /** Path or name of nmap. */
  program: string;
}

/** Starts a scan. */
export function startScan(deps: ScanDeps, task: ScanTask): RunningScan {
  return new Scan(deps, task);
}

class Scan implements RunningScan {
  readonly findings: Promise<ScanFindings>;
  readonly #deps: ScanDeps;
  readonly #task: ScanTask;
  readonly #open: OpenPorts;
  readonly #now: () => string;
  readonly #startedAt: string;
  readonly #phases: ScanPhase[] = [];
  readonly #runs = new Set<NmapRun>();
  readonly #notes = new Set<ScanNote>();
  readonly #pauses: ScanFindings['pauses'] = [];
  #progress: Pick<ScanProgress, 'step' | 'percent'> = { step: 'tcp_discovery', percent: 0 };
  #pause: { reason: ScanPause; startedAt: string } | null = null;
  #ended: EndReason | null = null;
  #fault: string | null = null;
  #isFailed = false;
  #replaced = 0;
  #enclosure: Enclosure | null = null;
  #runNmap: typeof runNmap | null = null;
  #pace: Pace | null = null;

  constructor(deps: ScanDeps, task: ScanTask) {
    this.#deps = deps;
    this.#task = task;
    this.#open = new OpenPorts(task.scanId);
    this.#now = startSteadyTime(deps.clock);
    this.#startedAt = this.#now();
    this.findings = this.#run();
  }

  fault(): string | null {
    return this.#fault;
  }

  replacedCharacters(): number {
    return this.#replaced;
  }

  progress(): ScanProgress {
    return {
      ...this.#progress,
      open: this.#open.list(),
      pausedFor: this.#pause?.reason ?? null,
      packets: this.#pace?.packets() ?? 0,
    };
  }

  pause(reason: ScanPause): void {
    if (this.#pause?.reason === reason || this.#ended !== null) return;
    this.#notePause();
    this.#pause = { reason, startedAt: this.#now() };
    this.#notes.add('paused');
    if (reason !== 'plan') this.#notes.add('host_pressure');
    this.#pace?.pause();
  }

  resume(): void {
    this.#notePause();
    this.#pause = null;
    this.#pace?.resume();
  }

  end(reason: EndReason): void {
    if (this.#ended !== null) return;
    this.#ended = reason;
    this.#notes.add(reason);
    for (const run of this.#runs) run.kill();
  }

  async #run(): Promise<ScanFindings> {
    try {
      // Loaded late: a host without the native library still captures.
      this.#runNmap = (await import('./run-nmap.ts')).runNmap;
      // Counting comes before the first packet.
      this.#pace = await this.#deps.pacer.open(this.#task);
      this.#enclosure = this.#deps.limits.enclose(this.#task.scanId);
      if (this.#pause !== null) this.#pace.pause();
      for (const transport of transports) await this.#discover(transport);
      for (const transport of transports) await this.#identify(transport);
    } catch (error) {
      this.#fail(describeError(error));
    } finally {
      this.#enclosure?.remove();
    }
    const findings = this.#conclude();
    this.#pace?.close();
    return findings;
  }

  async #discover(transport: ScanTransport): Promise<void> {
    if (this.#ended !== null) return;
    const { profile } = this.#task;
    this.#progress = { step: `${transport}_discovery`, percent: 0 };
    const phase: ScanPhase = {
      ...{ transport, ports_asked: portsAsked[profile], ports_answered: 0 },
      ...{ filtered: 0, silent: 0, finished: false },
    };
    this.#phases.push(phase);
    const onPercent = (percent: number) => {
      this.#progress = { step: `${transport}_discovery`, percent };
    };
    const { report } = await this.#nmap(
      transport,
      discoveryArguments(this.#task, profile, transport),
      onPercent,
    );
    if (report.isFinished && report.asked === phase.ports_asked) {
      phase.ports_answered = report.answered;
      phase.filtered = report.filtered;
      phase.silent = report.silent;
      phase.finished = true;
    } else {
      phase.ports_answered = this.#open.ports(transport).length;
      this.#fail(
        report.isHostDown
          ? 'no host has this address: it does not answer on its link'
          : 'nmap did not ask every port',
      );
    }
  }

  async #identify(transport: ScanTransport): Promise<void> {
    const ports = this.#open.ports(transport);
    if (ports.length === 0 || this.#ended !== null) return;
    const step = `${transport}_identification` as const;
    this.#progress = { step, percent: 0 };
    const isComplete = await identifyPorts(ports, {
      start: (group) => {
        const run = this.#start(transport, identificationArguments(this.#task, transport, group));
        return {
          isFinished: this.#take(run).then(({ report }) => report.isFinished),
          kill: () => run.kill(),
        };
      },
      wait: (ms, signal) => this.#waitRunning(ms, signal),
      isEnded: () => this.#ended !== null,
      onAsked: (count) => {
        this.#progress = { step, percent: (100 * count) / ports.length };
      },
    });
    if (!isComplete) {
      this.#notes.add('identification_failed');
      this.#isFailed = true;
    }
  }

  async #nmap(transport: ScanTransport, words: string[], onPercent: (percent: number) => void) {
    const outcome = await this.#take(this.#start(transport, words, onPercent));
    if (outcome.fault !== null) this.#fail(outcome.fault);
    return outcome;
  }

  #start(transport: ScanTransport, words: string[], onPercent: (percent: number) => void = () => {}) {
    const run = this.#runNmap!({
      ...{ transport, onPercent, arguments: words },
      program: this.#deps.program,
      procsFiles: this.#enclosure!.procsFiles,
      onOpen: (port) => this.#open.add(port, this.#now()),
    });
    this.#runs.add(run);
    if (run.processId !== null) this.#pace?.watch(run.processId);
    return run;
  }

  async #take(run: NmapRun): Promise<NmapOutcome> {
    const outcome = await run.outcome;
    this.#runs.delete(run);
    if (run.processId !== null) this.#pace?.forget(run.processId);
    this.#open.describe(outcome.report.open, this.#now());
    this.#replaced += outcome.report.replaced;
    if (outcome.isCut) {
      this.#notes.add('output_cut');
      this.#fail(outcome.fault ?? 'nmap wrote too much');
    }
    return outcome;
  }

  #fail(fault: string): void {
    this.#isFailed = true;
    if (this.#ended === null) this.#fault ??= fault;
  }

  /** Time in which the scan was not paused. */
  async #waitRunning(ms: number, signal: AbortSignal): Promise<void> {
    for (let left = ms; left > 0 && !signal.aborted; ) {
      await this.#deps.clock.wait(tickMs, signal);
      if (this.#pause === null) left -= tickMs;
    }
  }

  #notePause(): void {
    if (this.#pause === null || this.#pauses.length >= pausesMax) return;
    const { reason, startedAt } = this.#pause;
    this.#pauses.push({ reason, started_at: startedAt, ended_at: this.#now() });
  }

  #conclude(): ScanFindings {
    this.#notePause();
    this.#pause = null;
    if (
      this.#phases.some(
        ({ transport, filtered, silent }) => filtered > 0 || (transport === 'tcp' && silent > 0),
      )
    )
      this.#notes.add('filtered_ports');
    if (this.#phases.some(({ transport, silent }) => transport === 'udp' && silent > 0))
      this.#notes.add('silent_udp');
    if (this.#open.isFull) this.#notes.add('output_cut');
    const isComplete =
      this.#ended === null && !this.#isFailed && !this.#open.isFull && this.#phases.length === 2;
    if (this.#ended === null && this.#phases.some(({ finished }) => !finished))
      this.#notes.add('interrupted');
    if (!isComplete && this.#phases.length < 2) this.#notes.add(this.#ended ?? 'interrupted');
    return {
      profile: this.#task.profile,
      state: isComplete ? 'complete' : 'partial',
      started_at: this.#startedAt,
      finished_at: this.#now(),
      phases: this.#phases,
      services: this.#open.services(),
      notes: [...this.#notes],
      packets: this.#pace?.packets() ?? 0,
      pauses: this.#pauses,
    };
  }
}

/**
 * Asks open ports what they run. The first run asks all of them; one port that never answers holds a run up for nine
 * minutes, so a run that takes too long is ended and its ports are asked in four runs at once, down to one port each.
 */

/** Runs of one scan at the same time; together they stay within the scan's memory. */
export const runsAtOnce = 4;
const patienceMs = 30_000;
const patienceOfPortMs = 1000;
const groupMax = 256;

export interface IdentificationRun {
  /** True when each port was asked. */
  readonly isFinished: Promise<boolean>;
  kill(): void;
}

export interface IdentifyOptions {
  start(ports: readonly number[]): IdentificationRun;
  /** Resolves after this time of the scan's own, without its pauses, or when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  isEnded(): boolean;
  /** Of all ports, those that were asked. */
  onAsked(count: number): void;
}

/** Resolves with whether every port was asked. */
async function identifyPorts(ports: readonly number[], options: IdentifyOptions): Promise<boolean> {
  const queue: number[][] = [];
  for (let i = 0; i < ports.length; i += groupMax) queue.push(ports.slice(i, i + groupMax));
  let isComplete = true;
  let asked = 0;
  let running = 0;
  let wake: () => void = () => {};

  async function ask(group: number[]): Promise<void> {
    const run = options.start(group);
    const done = new AbortController();
    let isLate = false;
    if (group.length > 1)
      void options.wait(patienceMs + patienceOfPortMs * group.length, done.signal).then(() => {
        if (done.signal.aborted) return;
        isLate = true;
        run.kill();
      });
    const isFinished = await run.isFinished;
    done.abort();
    if (isLate && !isFinished && !options.isEnded()) queue.push(...split(group));
    else {
      isComplete &&= isFinished;
      asked += group.length;
      options.onAsked(asked);
    }
  }

  while (queue.length > 0 || running > 0) {
    if (options.isEnded()) queue.length = 0;
    while (queue.length > 0 && running < runsAtOnce) {
      running += 1;
      void ask(queue.shift()!).finally(() => {
        running -= 1;
        wake();
      });
    }
    if (running > 0)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  }
  return isComplete && asked === ports.length;
}

function split(group: readonly number[]): number[][] {
  const size = Math.ceil(group.length / runsAtOnce);
  const parts: number[][] = [];
  for (let i = 0; i < group.length; i += size) parts.push(group.slice(i, i + size));
  return parts;
}
