/**
 * Scans this host's servers as the monitor plans it, and reports what it found.
 *
 * A scan starts only right after the plan was fetched. While no plan can be fetched, or the host is under pressure, scans
 * are paused: the same processes go on later. A refusal, a withdrawal, a target that is gone and the end of the sensor end
 * them; what was found is reported as a partial result (NET-7.2).
 */

import { Value } from 'typebox/value';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { ScanPlan, type ScanPool, type ScanTarget } from '#contracts/sensor-api/port-scans.ts';
import { type MonitorClient, refusalMessage } from '#sensor/monitor-client/index.ts';
import { type ChosenScan, chooseScans } from './choose-scans.ts';
import { HostPressure, type HostSample, type PressureLimits, sampleEveryMs } from './host-pressure.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { OngoingScans, type OwnTraffic, type Scanner } from './ongoing-scans.ts';
import { createReportSender } from './report-sender.ts';

// The scan plan of this sensor's node, fetched and never stored: a scan starts only by a plan that was fetched just now.

/** NET-8.5: one fetch at a time, 15 seconds each. */
const fetchTimeoutMs = 15_000;
/** A plan of 4,096 targets and as many requests and withdrawals. */
const planBytesMax = 4 * 1024 * 1024;
/** Answers after which no scan may go on (NET-7.2). */
const endingStatuses = new Set([401, 403, 404, 410]);

type FetchedPlan =
  | { kind: 'plan'; plan: ScanPlan }
  /** The monitor wants no scans of this sensor. */
  | { kind: 'refused'; status: number; why: string }
  /** Nothing is known now. */
  | { kind: 'trouble'; why: string };

/** Creates the function that fetches the plan; an unchanged one is not sent again. Never throws. */
function createPlanFetcher(client: MonitorClient): (signal: AbortSignal) => Promise<FetchedPlan> {
  let known: { etag: string; plan: ScanPlan } | null = null;
  return async (signal) => {
    try {
      const answer = await client.request({
        ...{ method: 'GET', path: '/port-scans', timeoutMs: fetchTimeoutMs, signal },
        answerBytesMax: planBytesMax,
        ...(known ? { headers: { 'if-none-match': known.etag } } : {}),
      });
      if (answer.status === 304 && known) return { kind: 'plan', plan: known.plan };
      if (endingStatuses.has(answer.status)) {
        known = null;
        return { kind: 'refused', status: answer.status, why: refusalMessage(answer) };
      }
      if (answer.status !== 200) return { kind: 'trouble', why: refusalMessage(answer) };
      if (!Value.Check(ScanPlan, answer.json)) return { kind: 'trouble', why: 'the answer is no scan plan' };
      const etag = answer.headers.get('etag');
      known = etag === null ? null : { etag, plan: answer.json };
      return { kind: 'plan', plan: answer.json };
    } catch (error) {
      return { kind: 'trouble', why: describeError(error) };
    }
  };
}

const planEveryMs = 10_000;
const planSoonestMs = 5000;

/**
 * When the plan is fetched again: every ten seconds. Where a scan ended and another waits for its place, sooner: five
 * seconds after the fetch before, so that a place is not empty for up to ten (NET-8.5 allows a fetch every five).
 */
export class PlanTurns {
  readonly #clock: Clock;
  #nap = new AbortController();
  #hasEnded = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A scan ended: its place is free. */
  scanEnded(): void {
    this.#hasEnded = true;
    this.#nap.abort();
  }

  /** Resolves when it is time for the next fetch. `waitsForPlace` is asked after the end of a scan. */
  async wait(waitsForPlace: () => boolean, signal: AbortSignal): Promise<void> {
    const fromMs = this.#clock.monotonicMs();
    this.#hasEnded = false;
    await this.#clock.wait(planSoonestMs, signal);
    while (!signal.aborted) {
      const leftMs = fromMs + planEveryMs - this.#clock.monotonicMs();
      if (leftMs <= 0 || (this.#hasEnded && waitsForPlace())) return;
      this.#hasEnded = false;
      this.#nap = new AbortController();
      await this.#clock.wait(leftMs, AbortSignal.any([signal, this.#nap.signal]));
    }
  }
}

const retryMs = 5000;
const heartbeatEveryMs = 10_000;

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

export class ScanService implements Part {
  readonly name = 'port scans';
  readonly #options: ScanServiceOptions;
  readonly #stopping = new AbortController();
  readonly #pressure: HostPressure;
  #ledger: Ledger | null = null;
  /** Null where this host can not scan. */
  #scans: OngoingScans | null = null;
  #scanner: Scanner | null = null;
  #why: string | null = 'no plan was fetched yet';
  #hostReason: ReturnType<HostPressure['take']> = null;
  #isPlanFresh = false;
  #isEnding = false;
  #loops: Promise<void>[] = [];
  readonly #skipped = new Map<string, string>();
  readonly #turns: PlanTurns;

  constructor(options: ScanServiceOptions) {
    this.#options = options;
    this.#turns = new PlanTurns(options.clock);
    this.#pressure = new HostPressure(options.pressure);
  }

  status(): ScanStatus {
    return {
      why: this.#why,
      scans: this.#scans?.status() ?? [],
      pendingReports: this.#ledger?.pending().count ?? 0,
    };
  }

  async start(): Promise<void> {
    const { stateDirectory, clock, reporter, client, onOwnTraffic } = this.#options;
    const prepared = await this.#options.prepare();
    if (typeof prepared === 'string') {
      this.#why = prepared;
      reporter.warn('no port is scanned on this host', { why: prepared });
    } else this.#scanner = prepared;
    try {
      const onDamaged = (why: string) => reporter.error('the scan ledger was damaged and put aside', { why });
      this.#ledger = openLedger({ directory: stateDirectory, clock, onDamaged });
    } catch (error) {
      this.#why = `the scan ledger can not be opened: ${describeError(error)}`;
      reporter.error('no port is scanned', { why: this.#why });
      return;
    }
    const ledger = this.#ledger;
    const sender = createReportSender({ client, ledger, clock, reporter });
    this.#loops = [sender.run(this.#stopping.signal)];
    if (this.#scanner === null) return;
    const scans = new OngoingScans({
      ...{ clock, reporter, ledger, sender, onOwnTraffic },
      scanner: this.#scanner,
      onEnded: () => this.#turns.scanEnded(),
    });
    this.#scans = scans;
    this.#loops.push(this.#followPlan(ledger, scans), this.#watchHost(scans), this.#beat(scans));
  }

  async stop(): Promise<void> {
    this.#isEnding = true;
    this.#scans?.endAll('interrupted');
    await this.#scans?.ended();
    this.#stopping.abort();
    await Promise.all(this.#loops);
    await this.#scanner?.close();
    this.#scans?.storeResults();
    this.#ledger?.close();
    this.#ledger = null;
  }

  async #followPlan(ledger: Ledger, scans: OngoingScans): Promise<void> {
    const { client, clock } = this.#options;
    const { signal } = this.#stopping;
    const fetchPlan = createPlanFetcher(client);
    while (!signal.aborted) {
      const fetched = await fetchPlan(signal);
      if (signal.aborted || this.#isEnding) return;
      this.#take(fetched, ledger, scans);
      if (fetched.kind !== 'plan') await clock.wait(retryMs, signal);
      else await this.#turns.wait(() => this.#isDue(fetched.plan, ledger, scans), signal);
    }
  }

  #take(fetched: FetchedPlan, ledger: Ledger, scans: OngoingScans): void {
    this.#isPlanFresh = fetched.kind === 'plan';
    if (fetched.kind === 'refused') {
      const isOlder = fetched.status === 404;
      this.#say(isOlder ? 'the monitor plans no scans' : `the monitor refuses the plan: ${fetched.why}`);
      scans.endAll('interrupted');
      return;
    }
    if (fetched.kind === 'trouble') this.#say(`no fresh plan: ${fetched.why}`);
    this.#pauseOrResume(scans);
    if (fetched.kind !== 'plan') return;
    const { plan } = fetched;
    scans.endGone(plan, this.#options.targetFault);
    try {
      const requested = plan.requests.map((request) => request.scan_request_id);
      ledger.follow({ requested, withdrawn: plan.withdrawn });
      this.#startDue(plan, ledger, scans);
    } catch (error) {
      // A full disk: what can not be written down does not start.
      this.#say(`the scan ledger can not be written: ${describeError(error)}`);
    }
  }

  #startDue(plan: ScanPlan, ledger: Ledger, scans: OngoingScans): void {
    const held = this.#heldFor(ledger);
    this.#say(held);
    if (held !== null) return;
    for (const chosen of this.#choose(plan, ledger, scans)) scans.begin(plan, chosen, this.#stopping.signal);
  }

  #heldFor(ledger: Ledger): string | null {
    if (this.#hostReason !== null) return `the host is under pressure: ${this.#hostReason}`;
    return ledger.hasRoom() ? null : 'results of scans wait for the monitor, and there is no room for more';
  }

  #choose(plan: ScanPlan, ledger: Ledger, scans: OngoingScans): ChosenScan[] {
    const mayScan = (target: ScanTarget) => this.#mayScan(target);
    const nowMs = this.#options.clock.nowMs();
    return chooseScans({ plan, running: scans.running(), past: ledger, nowMs, mayScan });
  }

  /** Whether a scan could start by this plan if it were fresh. */
  #isDue(plan: ScanPlan, ledger: Ledger, scans: OngoingScans): boolean {
    try {
      return (
        !this.#isEnding && this.#heldFor(ledger) === null && this.#choose(plan, ledger, scans).length > 0
      );
    } catch {
      // The ledger can not be read now; the next plan says it.
      return false;
    }
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

  /** Pressure of the host goes before a missing plan: it lasts longer. */
  #pauseOrResume(scans: OngoingScans): void {
    scans.pauseOrResume(this.#hostReason ?? (this.#isPlanFresh ? null : 'plan'));
  }

  async #watchHost(scans: OngoingScans): Promise<void> {
    const { clock, readHost } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#hostReason = this.#pressure.take(readHost(), clock.monotonicMs());
        this.#pauseOrResume(scans);
      } catch (error) {
        this.#say(`the host can not be measured: ${describeError(error)}`);
        scans.endAll('host_pressure');
      }
      await clock.wait(sampleEveryMs, signal);
    }
  }

  async #beat(scans: OngoingScans): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.wait(heartbeatEveryMs, signal);
      await scans.beat(signal);
    }
  }

  #say(why: string | null): void {
    if (why === this.#why) return;
    this.#why = why;
    if (why === null) this.#options.reporter.info('scans are planned by the monitor');
    else this.#options.reporter.info('no scan starts', { why });
  }
}
