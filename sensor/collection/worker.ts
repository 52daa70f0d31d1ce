/**
 * One capture, or one fanout member of it, in a thread of its own: frames from the source to the packet path, closed
 * minutes and live windows to the main thread.
 *
 * The loop alternates between the source, which waits for up to 100 ms, and the event loop, where messages come in.
 * Wall time is compared with monotonic time in every turn: after a jump of the clock, or a sleep of the host, the open
 * minute ends in the old time and another one begins in the new, so no minute is reported for time that did not pass.
 */
import { flushCompileCache } from 'node:module';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { startOfMinuteMs } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { GapReason } from '#contracts/sensor-api/telemetry.ts';
import { type Capture, createCapture, type MinuteReport } from '#sensor/capture/index.ts';
import { createHostTime, offsetOf } from '#sensor/host-time/index.ts';
import { type ObserveFrame, openSource, type PacketSource } from '#sensor/packet-source/index.ts';
import type { FromWorker, LocalAddresses, ToWorker, WorkerInput } from './capture-messages.ts';
import { registrableDomain } from './registrable-domain.ts';
import { createWallWatch } from './wall-watch.ts';

const pollMs = 100;
/** A window may close before its last block came from the ring: what comes late counts in the next one. */
const windowSettleMs = 250;

const input = workerData as WorkerInput;
const port = parentPort!;
const say = (message: FromWorker) => port.postMessage(message);

let capture: Capture | null = null;
const discard: ObserveFrame = () => {};
let observeFrame = discard;
let local: LocalAddresses = { prefixes: [], addresses: [] };
let source: PacketSource | null = null;
let isStopping = false;
const watch = createWallWatch();
const hostTime = createHostTime({ nowMs: Date.now });
let reasonOfOpenMinute: GapReason | null = null;

function begin(linkType: number): void {
  const { believe } = watch;
  const begun = createCapture({ ...input, linkType, registrableDomain, local, believe });
  listenNow(begun);
  // Handed over as it is: an arrow with rest arguments would make an array for every packet.
  observeFrame = begun.observe.bind(begun);
  capture = begun;
}

function listenNow(begun: Capture): void {
  const moment = hostTime.read();
  begun.listeningSince(moment.wallMs);
  say({ kind: 'listening', sinceMs: moment.wallMs, offsetMs: offsetOf(moment) });
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

/** After a jump: the open minute ends where the old time ended, and another one begins in the new time. */
function followClock(nowMs: number, stepMs: number, linkType: number): void {
  if (stepMs === 0) return;
  const oldNowMs = nowMs - stepMs;
  if (capture) {
    sendReports(capture.closeAll(oldNowMs), 'clock_step');
    sendWindows(oldNowMs);
    // Names and flows go on over a small jump; over a large one their ages mean nothing any more.
    if (startOfMinuteMs(oldNowMs) === startOfMinuteMs(nowMs)) listenNow(capture);
    else begin(linkType);
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
    const { nowMs, stepMs } = watch.look();
    followClock(nowMs, stepMs, source.linkType);
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
