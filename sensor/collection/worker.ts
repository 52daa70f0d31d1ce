/**
 * Thread of one capture, or of one fanout member: reads frames from the source into the packet path and sends closed
 * minutes and live windows to the main thread.
 *
 * The thread alternates between the source, which waits for up to 100 ms, and the event loop, which receives messages.
 */
import { flushCompileCache } from 'node:module';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { CodedError, describeError } from '#common/errors/index.ts';
import { createHostTime } from '#sensor/host-time/index.ts';
import { openSource, type PacketSource } from '#sensor/packet-source/index.ts';
import { CaptureLoop, createWallWatch } from './capture-loop.ts';
import type { FromWorker, ToWorker, WorkerInput } from './capture-messages.ts';

const input = workerData as WorkerInput;
const port = parentPort!;
const say = (message: FromWorker) => port.postMessage(message);

let source: PacketSource | null = null;
let loop: CaptureLoop | null = null;
let isStopping = false;

port.on('message', (message: ToWorker) => {
  if (message.kind === 'stop') isStopping = true;
  else if (message.kind === 'count') loop?.setCounting(message.order);
  else if (message.kind === 'watch') loop?.watch(message.scope);
  else if (message.kind === 'record') loop?.record(message.wanted);
  else if (message.kind === 'own-scans') loop?.setOwnScans(message.scans);
  else if (message.kind === 'local') loop?.setLocal(message.local);
  else loop?.begin(message.local);
});

try {
  // Write the cache now, so that the next start after a kill needs no compilation.
  flushCompileCache();
  const opened = await openSource(input.source);
  source = opened.source;
  const hostTime = createHostTime({ nowMs: Date.now });
  loop = new CaptureLoop({ input, source, watch: createWallWatch(), hostTime, say });
  const { method, countsSegments, fanoutGroup } = source;
  say({ kind: 'ready', source: { method, countsSegments, fanoutGroup, fallback: opened.fallback } });
  while (!isStopping) {
    await loop.turn();
    await nextTurn();
  }
  // Frames that were under way at the stop still count.
  await loop.linger();
  loop.finish('sensor_down');
} catch (error) {
  loop?.finish('capture_failed');
  const code = error instanceof CodedError ? error.code : 'capture.failed';
  const message =
    error instanceof CodedError ? error.message : `Capture ${input.name}: ${describeError(error)}`;
  say({ kind: 'failed', code, message });
} finally {
  source?.close();
  port.close();
}
