/**
 * Scans this host's servers as the monitor plans it, and reports what it found.
 *
 * A scan starts only right after the plan was fetched. While no plan can be fetched, or the host is under pressure, scans
 * are paused: the same processes go on later. A refusal, a withdrawal, a target that is gone and the end of the sensor end
 * them; what was found is reported as a partial result (NET-7.2).
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { ScanPlan, ScanPool, ScanResult, ScanTarget } from '#contracts/sensor-api/port-scans.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import { type ChosenScan, chooseScans } from './choose-scans.ts';
import { HostPressure, type HostSample, type PressureLimits, sampleEveryMs } from './host-pressure.ts';
import { type Ledger, openLedger } from './ledger/index.ts';
import { OngoingScan } from './ongoing-scan.ts';
import { createReportSender, type ReportSender } from './report-sender.ts';
import type { EndReason, RunningScan, ScanTask } from './scan.ts';
import { createPlanFetcher, type FetchedPlan } from './scan-plan.ts';

const planEveryMs = 10_000;
const retryMs = 5000;
const heartbeatEveryMs = 10_000;
/** Captures know a scan's traffic as the sensor's own before its first packet. */
const markMs = 300;
/** Answers to the last probes come after the scan; they are its traffic too. */
const lingerMs = 3000;

/** A pair of addresses whose traffic is the sensor's own. */
export interface OwnTraffic {
  sourceAddress: string;
  address: string;
}

export interface ScanServiceOptions {
  client: MonitorClient;
  stateDirectory: string;
  clock: Clock;
  reporter: Reporter;
  pressure: PressureLimits;
  /** What starts scans, or why this host can not scan. */
  prepare(): Promise<Scanner | string>;
  readHost(): HostSample;
  /** Null when this host may scan the target, else why not. */
  targetFault(target: ScanTarget): string | null;
  /** Traffic of the sensor's own from now on; said before the first probe and some time after the last. */
  onOwnTraffic(pairs: readonly OwnTraffic[]): void;
}

/** Starts the processes of scans. */
export interface Scanner {
  start(task: ScanTask): RunningScan;
  close(): Promise<void>;
}

/** What runs, for the local status. */
export interface ScanStatus {
  /** Why nothing is scanned now; null when scans may run. */
  why: string | null;
  scans: {
    address: string;
    profile: string;
    pool: ScanPool;
    step: string;
    percent: number;
    open: number;
    pausedFor: string | null;
  }[];
  pendingReports: number;
}

export interface ScanService extends Part {
  status(): ScanStatus;
}

/** Creates the service; nothing runs before `start`. */
export function createScanService(options: ScanServiceOptions): ScanService {
  return new Scans(options);
}

class Scans implements ScanService {
  readonly name = 'port scans';
  readonly #options: ScanServiceOptions;
  readonly #stopping = new AbortController();
  readonly #pressure: HostPressure;
  readonly #ongoing = new Map<string, OngoingScan>();
  readonly #lingering = new Set<OwnTraffic>();
  /** Results that wait for the disk. */
  readonly #unstored: ScanResult[] = [];
  #ledger: Ledger | null = null;
  #sender: ReportSender | null = null;
  #scanner: Scanner | null = null;
  #why: string | null = 'no plan was fetched yet';
  #hostReason: ReturnType<HostPressure['take']> = null;
  #isPlanFresh = false;
  #loops: Promise<void>[] = [];
  readonly #skipped = new Map<string, string>();

  constructor(options: ScanServiceOptions) {
    this.#options = options;
    this.#pressure = new HostPressure(options.pressure);
  }

  status(): ScanStatus {
    return {
      why: this.#why,
      scans: [...this.#ongoing.values()].map((one) => one.status()),
      pendingReports: this.#ledger?.pending().count ?? 0,
    };
  }

  async start(): Promise<void> {
    const { stateDirectory, clock, reporter, client } = this.#options;
    const prepared = await this.#options.prepare();
    if (typeof prepared === 'string') {
      this.#why = prepared;
      reporter.warn('no port is scanned on this host', { why: prepared });
    } else this.#scanner = prepared;
    try {
      const onDamaged = (why: string) => reporter.error('the scan ledger was damaged and put aside', { why });
      this.#ledger = openLedger({ directory: stateDirectory, nowMs: () => clock.nowMs(), onDamaged });
    } catch (error) {
      this.#why = `the scan ledger can not be opened: ${describeError(error)}`;
      reporter.error('no port is scanned', { why: this.#why });
      return;
    }
    this.#sender = createReportSender({ client, ledger: this.#ledger, clock, reporter });
    const { signal } = this.#stopping;
    this.#loops = [this.#sender.run(signal)];
    if (this.#scanner) this.#loops.push(this.#followPlan(), this.#watchHost(), this.#beat());
  }

  async stop(): Promise<void> {
    this.#endAll('interrupted');
    await Promise.all([...this.#ongoing.values()].map((one) => one.done));
    this.#stopping.abort();
    await Promise.all(this.#loops);
    await this.#scanner?.close();
    this.#storeResults();
    this.#ledger?.close();
    this.#ledger = null;
  }

  async #followPlan(): Promise<void> {
    const { client, clock } = this.#options;
    const { signal } = this.#stopping;
    const fetchPlan = createPlanFetcher(client);
    while (!signal.aborted) {
      const fetched = await fetchPlan(signal);
      if (signal.aborted) return;
      this.#take(fetched);
      await clock.wait(fetched.kind === 'plan' ? planEveryMs : retryMs, signal);
    }
  }

  #take(fetched: FetchedPlan): void {
    this.#isPlanFresh = fetched.kind === 'plan';
    if (fetched.kind === 'refused') {
      const isOlder = fetched.status === 404;
      this.#say(isOlder ? 'the monitor plans no scans' : `the monitor refuses the plan: ${fetched.why}`);
      this.#endAll('interrupted');
      return;
    }
    if (fetched.kind === 'trouble') this.#say(`no fresh plan: ${fetched.why}`);
    this.#pauseOrResume();
    if (fetched.kind !== 'plan') return;
    try {
      this.#endGone(fetched.plan);
      this.#startDue(fetched.plan);
    } catch (error) {
      // A full disk: what can not be written down does not start.
      this.#say(`the scan ledger can not be written: ${describeError(error)}`);
    }
  }

  #endGone(plan: ScanPlan): void {
    const withdrawn = new Set(plan.withdrawn);
    const targets = new Map(plan.targets.map((target) => [target.target_id, target]));
    for (const one of this.#ongoing.values()) {
      const target = targets.get(one.target.target_id);
      const isSame =
        target?.address === one.target.address &&
        target.interface === one.target.interface &&
        target.source_address === one.target.source_address;
      if (!isSame || withdrawn.has(one.scanId) || this.#options.targetFault(one.target) !== null)
        one.end('withdrawn');
    }
    // Last, because a full disk refuses it.
    this.#ledger!.withdraw(plan.withdrawn);
  }

  #startDue(plan: ScanPlan): void {
    const ledger = this.#ledger!;
    const held =
      this.#hostReason !== null
        ? `the host is under pressure: ${this.#hostReason}`
        : ledger.hasRoom()
          ? null
          : 'results of scans wait for the monitor, and there is no room for more';
    this.#say(held);
    if (held !== null) return;
    const running = [...this.#ongoing.values()].map(({ pool, target }) => ({
      pool,
      address: target.address,
    }));
    const nowMs = this.#options.clock.nowMs();
    const mayScan = (target: ScanTarget) => this.#mayScan(target);
    for (const chosen of chooseScans({ plan, running, past: ledger, nowMs, mayScan }))
      this.#begin(plan, chosen);
  }

  #mayScan(target: ScanTarget): boolean {
    const fault = this.#options.targetFault(target);
    if (fault === null) this.#skipped.delete(target.target_id);
    else if (this.#skipped.get(target.target_id) !== fault) {
      if (this.#skipped.size > 8192) this.#skipped.clear();
      this.#skipped.set(target.target_id, fault);
      this.#options.reporter.warn('a target is not scanned', { target: target.target_id, why: fault });
    }
    return fault === null;
  }

  #begin(plan: ScanPlan, chosen: ChosenScan): void {
    const { clock, reporter } = this.#options;
    const scanId = chosen.requestId ?? randomUUID();
    const one = new OngoingScan(scanId, plan.revision, chosen, clock);
    if (!this.#ledger!.begin(one.started(), one.interrupted())) return;
    this.#ongoing.set(scanId, one);
    this.#sayOwnTraffic();
    void clock.wait(markMs).then(() => {
      one.run(this.#scanner!.start(one.task));
      this.#pauseOrResume();
    });
    reporter.info('scan started', { scan: scanId, address: chosen.target.address, pool: chosen.pool });
    this.#sender!.wake();
    void one.done.then(() => this.#finish(one));
  }

  async #finish(one: OngoingScan): Promise<void> {
    const { clock, reporter } = this.#options;
    this.#ongoing.delete(one.scanId);
    const result = one.result();
    this.#unstored.push(result);
    this.#storeResults();
    const fault = one.fault();
    const found = { scan: one.scanId, address: one.target.address, state: result.state };
    reporter.info('scan ended', {
      ...found,
      open: result.services.length,
      ...(fault === null ? {} : { why: fault }),
    });
    const own = { sourceAddress: one.target.source_address, address: one.target.address };
    this.#lingering.add(own);
    await clock.wait(lingerMs, this.#stopping.signal);
    this.#lingering.delete(own);
    this.#sayOwnTraffic();
  }

  /** Stores results. What a full disk refuses is kept, and tried again with the next heartbeats. */
  #storeResults(): void {
    try {
      while (this.#unstored.length > 0) {
        this.#ledger?.end(this.#unstored[0]!);
        this.#unstored.shift();
        this.#sender?.wake();
      }
    } catch (error) {
      const [{ scan_id: scan }] = this.#unstored as [ScanResult];
      this.#options.reporter.error('a result of a scan can not be stored yet', {
        scan,
        why: describeError(error),
      });
    }
  }

  #sayOwnTraffic(): void {
    const ongoing = [...this.#ongoing.values()].map(({ target }) => ({
      sourceAddress: target.source_address,
      address: target.address,
    }));
    this.#options.onOwnTraffic([...ongoing, ...this.#lingering]);
  }

  /** Pressure of the host goes before a missing plan: it lasts longer. */
  #pauseOrResume(): void {
    const reason = this.#hostReason ?? (this.#isPlanFresh ? null : 'plan');
    for (const one of this.#ongoing.values()) {
      if (reason === null) one.resume();
      else one.pause(reason);
    }
  }

  async #watchHost(): Promise<void> {
    const { clock, readHost } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#hostReason = this.#pressure.take(readHost(), clock.monotonicMs());
        this.#pauseOrResume();
      } catch (error) {
        this.#say(`the host can not be measured: ${describeError(error)}`);
        this.#endAll('host_pressure');
      }
      await clock.wait(sampleEveryMs, signal);
    }
  }

  async #beat(): Promise<void> {
    const { clock, reporter } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.wait(heartbeatEveryMs, signal);
      this.#storeResults();
      for (const one of [...this.#ongoing.values()]) {
        if (signal.aborted) return;
        try {
          if (one.hasNews()) this.#ledger?.note(one.interrupted());
        } catch (error) {
          reporter.warn('what a scan found so far can not be stored', { why: describeError(error) });
        }
        await this.#sender!.offer(one.heartbeat(), signal);
      }
    }
  }

  #endAll(reason: EndReason): void {
    for (const one of this.#ongoing.values()) one.end(reason);
  }

  #say(why: string | null): void {
    if (why === this.#why) return;
    this.#why = why;
    if (why === null) this.#options.reporter.info('scans are planned by the monitor');
    else this.#options.reporter.info('no scan starts', { why });
  }
}
