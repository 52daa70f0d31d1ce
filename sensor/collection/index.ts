/**
 * Collects the reports of all captures into one upload per UTC minute and commits it to the spool.
 *
 * Guarantees: every heard frame is committed once. A minute that is incomplete, or that the clock showed twice, has a
 * gap row. Minutes in which the sensor did not run become a gap at its next start. Time that a clock step skipped is
 * not a gap, and no gap covers future time.
 */

import { type Clock, systemClock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { liveWindowMs } from '#contracts/sensor-api/live.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { OwnScan } from '#sensor/capture/index.ts';
import type { Detection } from '#sensor/detection/index.ts';
import type { Evidence } from '#sensor/evidence/index.ts';
import { createHostTime, type HostTime } from '#sensor/host-time/index.ts';
import { downgradeForMonitor, type SensorPlan } from '#sensor/plan/index.ts';
import { CaptureGroup } from './capture-group.ts';
import type { CaptureSpec } from './capture-messages.ts';
import { createKernelCounts } from './kernel-counts.ts';
import { cutWindow, type LocalWindow } from './merge.ts';
import { MinuteCollector, type MinuteCollectorOptions } from './minute-collector.ts';
import { UplinkSettler } from './settle-uplinks.ts';

export type { CaptureState } from './capture-group.ts';
export type { CaptureRole, CaptureSpec } from './capture-messages.ts';
export { compileThread } from './member-thread.ts';
export type { LocalWindow } from './merge.ts';

type CollectorSpool = MinuteCollectorOptions['spool'];

/** Replaces the spool when minutes are only displayed: it stores nothing and covers nothing. */
export function createUnkeptMinutes(append: CollectorSpool['append'] = () => {}): CollectorSpool {
  return { append, coveredBefore: () => null, lastCommit: () => null, lastStampedBy: () => null };
}

// Runs all captures of a sensor and commits their minutes.

const tickMs = 500;
/** Number of captures with full tables; more captures divide the limit of the process (NET-8.6). */
const capturesMax = 4;
const noMacs: ReadonlySet<string> = new Set();
/** A missing interface may appear later. Every other error is reported to the operator at once. */
const mayAppear = new Set(['capture.no_interface', 'capture.interface_gone']);

export interface CollectionOptions {
  captures: readonly CaptureSpec[];
  spool: MinuteCollectorOptions['spool'];
  /** Where the running minute is kept for the next start; absent where minutes are only displayed. */
  stateDirectory?: string;
  reporter: Reporter;
  clock?: Clock;
  hostTime?: HostTime;
  /** Called when a capture starts or stops listening. */
  onStateChanged?(): void;
  /** Called after each commit of an upload. */
  onCommitted(): void;
  /** Called for each live window of each capture. */
  onWindow?(window: LocalWindow): void;
  /** MACs of this host and of its routers: they own no address (NET-2.2.9). */
  foreignMacs?(): ReadonlySet<string>;
  /** Records of other parts for the next commit. */
  records?: MinuteCollectorOptions['records'];
  /** Gets the seconds of the captures; without it nothing is detected. */
  detection?: Pick<Detection, 'of'>;
  /** Gets the packets of attacks; without it none are recorded. */
  evidence?: Pick<Evidence, 'of'>;
  /** See `MinuteCollectorOptions`. */
  dropped?: MinuteCollectorOptions['dropped'];
  /** Length of live windows. */
  windowMs?: number;
}

export type Collection = ReturnType<typeof createCollection>;

/** Creates the collection; it opens no interface before `start`. */
export function createCollection(options: CollectionOptions) {
  const { spool, reporter } = options;
  const clock = options.clock ?? systemClock;
  const hostTime = options.hostTime ?? createHostTime(clock);
  const stopping = new AbortController();
  let plan: SensorPlan | null = null;
  let ticking: Promise<void> = Promise.resolve();
  const settler = new UplinkSettler({
    bridges: () =>
      groups.flatMap((group) => {
        const { name, role, isListening } = group.state();
        return role === 'bridge' && isListening ? [name] : [];
      }),
    onWindow(window) {
      collector.window(window);
      options.onWindow?.(cutWindow(window));
    },
  });
  // Where minutes are only displayed, counters of a running sensor must stay as they are.
  const counted = options.stateDirectory === undefined ? [] : options.captures;
  const kernel = createKernelCounts({ captures: counted, reporter, detection: options.detection });
  const collector = new MinuteCollector({
    captures: options.captures.map((spec) => spec.name),
    spool,
    reporter,
    bootId: hostTime.bootId,
    ...(options.stateDirectory && { stateDirectory: options.stateDirectory }),
    onCommitted: options.onCommitted,
    records: options.records ?? [],
    count: kernel.count,
    settle: (minutes) => settler.settle(minutes),
    ...(options.dropped && { dropped: options.dropped }),
  });
  const groups = createGroups(options, clock, collector, settler, (minute) =>
    plan ? downgradeForMonitor(minute, plan) : minute,
  );

  async function tick(): Promise<void> {
    while (!stopping.signal.aborted) {
      collector.tick(hostTime.read());
      settler.tick();
      await kernel.tick();
      await clock.wait(tickMs, stopping.signal);
    }
  }

  return {
    name: 'collection',
    async start() {
      await kernel.start();
      collector.start(hostTime.read());
      const missing = await Promise.all(groups.map((group) => group.open()));
      const isHopeless = missing.every((why) => why !== null);
      const failed = missing.find((why) => why !== null && (isHopeless || !mayAppear.has(why.code)));
      if (failed) {
        await Promise.all(groups.map((group) => group.stop()));
        throw failed;
      }
      for (const [i, why] of missing.entries()) if (why) groups[i]!.keepTrying(why);
      ticking = tick();
    },
    async stop() {
      stopping.abort();
      await ticking;
      await Promise.all(groups.map((group) => group.stop()));
      collector.finish();
      kernel.stop();
    },
    /** Applies a plan: its addresses are local from now on. Frames count from the first plan on. */
    follow(next: SensorPlan) {
      plan = next;
      settler.follow(next);
      const { localPrefixes: prefixes, protectedAddresses: addresses, owners } = next;
      const local = { prefixes, addresses, owners };
      const detected = next.detection && { prefixes: next.detection.additionalPrefixes };
      kernel.follow(local, detected, next.takesClaims);
      for (const group of groups) group.setLocal(local);
    },
    /** Keeps the traffic of the sensor's own scans apart from now on; captures know it within a fifth of a second. */
    setOwnScans(scans: readonly OwnScan[]) {
      for (const group of groups) group.setOwnScans(scans);
    },
    /** True while the disk accepts no minutes. */
    isPaused: () => collector.isPaused(),
    states: () => groups.map((group) => ({ ...group.state(), whyNotKernel: kernel.whyNot(group.name) })),
  };
}

/** Fraction of one capture's tables that each of so many captures has: a process has those of four (NET-8.6). */
export function tableShare(captures: number): number {
  return Math.min(1, capturesMax / Math.max(1, captures));
}

/** A group for each capture, which reports to the collector. `downgrade`: a minute as the monitor understands it. */
function createGroups(
  options: CollectionOptions,
  clock: Clock,
  collector: MinuteCollector,
  settler: UplinkSettler,
  downgrade: (minute: TelemetryMinute) => TelemetryMinute,
): CaptureGroup[] {
  const { captures, reporter } = options;
  const share = tableShare(captures.length);
  return captures.map(
    (spec) =>
      new CaptureGroup({
        spec,
        share: share / (spec.members ?? 1),
        windowMs: options.windowMs ?? liveWindowMs,
        foreignMacs: options.foreignMacs ?? (() => noMacs),
        onWindow: (window) => settler.offer(window),
        clock,
        reporter,
        detection: options.detection?.of(spec.name),
        evidence: options.evidence?.of(spec.name),
        onListening: (sinceMs, offsetMs) => {
          collector.listening(spec.name, sinceMs, offsetMs);
          options.onStateChanged?.();
          reporter.info('capture listens', { capture: spec.name });
        },
        onFailed: () => {
          collector.failed(spec.name);
          options.onStateChanged?.();
        },
        onMinute: (minute, reason) => {
          warnOfLoss(reporter, spec.name, minute.totals.kernelDropped);
          collector.report(downgrade(minute), reason);
        },
      }),
  );
}

function warnOfLoss(reporter: Reporter, capture: string, kernelDropped: number): void {
  if (kernelDropped === 0) return;
  reporter.warn('the kernel dropped packets because the ring was full', { capture, packets: kernelDropped });
}
