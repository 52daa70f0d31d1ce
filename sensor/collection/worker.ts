/**
 * One capture, or one fanout member of it, in a thread of its own: frames from the source to the packet path, closed
 * minutes and live windows to the main thread.
 *
 * The loop alternates between the source, which waits for up to 100 ms, and the event loop, where messages come in.
 * Wall time is compared with monotonic time in every turn: after a jump of the clock the packet path starts anew,
 * because neither the minutes jumped over nor those that come twice were observed.
 */
import { flushCompileCache } from 'node:module';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { startOfMinuteMs } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { GapReason } from '#contracts/sensor-api/telemetry.ts';
import { type Capture, createCapture, type MinuteReport } from '#sensor/capture/index.ts';
import { type ObserveFrame, openSource, type PacketSource } from '#sensor/packet-source/index.ts';
import type { FromWorker, LocalAddresses, ToWorker, WorkerInput } from './capture-messages.ts';
import { registrableDomain } from './registrable-domain.ts';

const pollMs = 100;
/** A window may close before its last block came from the ring: what comes late counts in the next one. */
const windowSettleMs = 250;
/** A smaller step is the time daemon's ordinary work. */
const clockStepMs = 1500;

const input = workerData as WorkerInput;
const port = parentPort!;
const say = (message: FromWorker) => port.postMessage(message);

let capture: Capture | null = null;
const discard: ObserveFrame = () => {};
let observeFrame = discard;
let local: LocalAddresses = { prefixes: [], addresses: [] };
let source: PacketSource | null = null;
let isStopping = false;
/** Wall time minus monotonic time when the clock was last looked at. */
let wallOffset = Date.now() - performance.now();
let reasonOfOpenMinute: GapReason | null = null;

function begin(linkType: number): void {
  const sinceMs = Date.now();
  const begun = createCapture({ ...input, linkType, registrableDomain, local });
  begun.listeningSince(sinceMs);
  // Handed over as it is: an arrow with rest arguments would make an array for every packet.
  observeFrame = begun.observe.bind(begun);
  capture = begun;
  say({ kind: 'listening', sinceMs });
}

function sendReports(reports: MinuteReport[], lastReason: GapReason | null): void {
  if (reports.length === 0) return;
  const firstReason = reasonOfOpenMinute;
  reasonOfOpenMinute = null;
  say({
    kind: 'reports',
    reports: reports.map((report, i) => {
      const reason = (i === 0 ? firstReason : null) ?? (i === reports.length - 1 ? lastReason : null);
      return { minute: cutShort(report, reason), reason };
    }),
  });
}

/** A report that is not whole says so in its time, too. */
function cutShort(report: MinuteReport, reason: GapReason | null): MinuteReport {
  return reason ? { ...report, observedMs: Math.min(report.observedMs, 59_999) } : report;
}

function sendWindows(untilMs: number): void {
  const windows = capture?.closeWindows(untilMs) ?? [];
  if (windows.length > 0) say({ kind: 'windows', windows });
}

/** After a jump: the open minute ends where the old time ended, and the packet path begins anew in the new time. */
function followClock(nowMs: number, monotonicMs: number, linkType: number): void {
  const stepMs = nowMs - monotonicMs - wallOffset;
  if (Math.abs(stepMs) < clockStepMs) return;
  const oldNowMs = nowMs - stepMs;
  wallOffset = nowMs - monotonicMs;
  if (capture && startOfMinuteMs(oldNowMs) !== startOfMinuteMs(nowMs)) {
    sendReports(capture.closeAll(oldNowMs), 'clock_step');
    sendWindows(oldNowMs);
    begin(linkType);
  }
  reasonOfOpenMinute = 'clock_step';
}

/** Reports the open minute as it stands. */
function finish(reason: GapReason): void {
  if (!capture) return;
  const nowMs = Date.now();
  sendReports(capture.closeAll(nowMs), reason);
  sendWindows(nowMs);
}

async function observe(source: PacketSource): Promise<void> {
  while (!isStopping) {
    await source.poll(pollMs, observeFrame);
    const dropped = source.takeDropped();
    if (dropped > 0) capture?.addKernelDropped(dropped);
    const nowMs = Date.now();
    followClock(nowMs, performance.now(), source.linkType);
    if (capture) sendReports(capture.closeMinutes(nowMs - source.settleMs), null);
    sendWindows(nowMs - Math.max(windowSettleMs, source.settleMs - 750));
    await nextTurn();
  }
}

port.on('message', (message: ToWorker) => {
  if (message.kind === 'stop') {
    isStopping = true;
    return;
  }
  local = message.local;
  if (message.kind === 'local') capture?.setLocal(local);
  else if (source) begin(source.linkType);
});

try {
  // Kept now, so that a sensor that is killed later starts again without compiling.
  flushCompileCache();
  const opened = await openSource(input.source);
  source = opened.source;
  const { method, countsSegments, fanoutGroup } = source;
  say({ kind: 'ready', source: { method, countsSegments, fanoutGroup, fallback: opened.fallback } });
  await observe(source);
  // What was on its way at the stop still counts.
  const until = performance.now() + source.lingerMs;
  do await source.poll(pollMs, observeFrame);
  while (performance.now() < until);
  finish('sensor_down');
} catch (error) {
  finish('capture_failed');
  const code = error instanceof CodedError ? error.code : 'capture.failed';
  const message =
    error instanceof CodedError ? error.message : `Capture ${input.name}: ${describeError(error)}`;
  say({ kind: 'failed', code, message });
} finally {
  source?.close();
  port.close();
}
