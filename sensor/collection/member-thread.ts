/** The main thread's handle of one capture thread: starts it, receives its messages, stops it. */
import { Worker } from 'node:worker_threads';
import { type Clock, systemClock } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { CountingOrder, MemberSecond, WatchedScope } from '#sensor/attack-counters/index.ts';
import type { OwnScan, WindowReport } from '#sensor/capture/index.ts';
import type { RecordedPackets, WantedRecording } from '#sensor/recording/index.ts';
import type {
  FromWorker,
  LocalAddresses,
  MemberMinute,
  ReadySource,
  ToWorker,
  WorkerInput,
} from './capture-messages.ts';

/** A thread that does not end within this time is terminated. */
const stopPatienceMs = 5000;
/** Packets allocate nothing, so a small young generation is enough; the default takes 48 MiB per thread. */
const youngMiB = 6;

export interface MemberThreadOptions {
  input: WorkerInput;
  clock: Clock;
  onListening(sinceMs: number, offsetMs: number): void;
  onReports(reports: MemberMinute[]): void;
  onWindows(windows: WindowReport[]): void;
  onSeconds(seconds: MemberSecond[]): void;
  onStepped(byMs: number): void;
  onRecorded(recorded: RecordedPackets[]): void;
  /** The thread ended after its source was open. */
  onEnded(why: CodedError): void;
}

export type MemberThread = ReturnType<typeof createMemberThread>;

/** Creates the handle; no thread runs before `start`. */
export function createMemberThread(options: MemberThreadOptions) {
  const { input, clock } = options;
  let worker: Worker | null = null;
  let ended: Promise<void> = Promise.resolve();
  let isReady = false;
  let hasBegun = false;

  const tell = (message: ToWorker) => worker?.postMessage(message);

  function hear(message: FromWorker, onReady: (source: ReadySource) => void): CodedError | null {
    if (message.kind === 'failed') return new CodedError(message.code, message.message);
    if (message.kind === 'ready') {
      isReady = true;
      onReady(message.source);
    } else passOn(options, message);
    return null;
  }

  return {
    /** Resolves when the source is open. Rejects with the error. */
    start(): Promise<ReadySource> {
      const started = new Worker(new URL('./worker.ts', import.meta.url), {
        workerData: input,
        name: `capture ${input.name}`,
        resourceLimits: { maxYoungGenerationSizeMb: youngMiB },
      });
      worker = started;
      return new Promise((resolve, reject) => {
        let failure: CodedError | null = null;
        started.on('message', (message: FromWorker) => {
          failure = hear(message, resolve) ?? failure;
        });
        started.on('error', (error) => {
          const why = describeError(error);
          failure = new CodedError('capture.failed', `Capture ${input.name} crashed: ${why}`);
        });
        ended = new Promise((resolveEnded) => {
          started.on('exit', () => {
            worker = null;
            const why = failure ?? new CodedError('capture.failed', `Capture ${input.name} ended.`);
            resolveEnded();
            reject(why);
            if (isReady) options.onEnded(why);
          });
        });
      });
    },
    /** Sets the local addresses. Frames count from the first call on. */
    setLocal(local: LocalAddresses) {
      tell({ kind: hasBegun ? 'local' : 'begin', local });
      hasBegun = true;
    },
    /** Counts for the detector from now on; null: no more. Only after `setLocal`. */
    setCounting(order: CountingOrder | null) {
      tell({ kind: 'count', order });
    },
    /** Counts for the detector what these addresses send and receive; null: all that is protected. Only after `setLocal`. */
    watch(scope: WatchedScope) {
      tell({ kind: 'watch', scope });
    },
    /** Records the packets of these attacks from now on, and of no others. Only after `setLocal`. */
    record(wanted: readonly WantedRecording[]) {
      tell({ kind: 'record', wanted });
    },
    /** Keeps the traffic of the sensor's own scans apart from now on. Only after `setLocal`. */
    setOwnScans(scans: readonly OwnScan[]) {
      tell({ kind: 'own-scans', scans });
    },
    /** Resolves after the last reports have arrived. */
    async stop() {
      const stubborn = worker;
      tell({ kind: 'stop' });
      const patience = new AbortController();
      await Promise.race([ended, clock.wait(stopPatienceMs, patience.signal)]);
      patience.abort();
      await stubborn?.terminate();
    },
  };
}

type Passed = Exclude<FromWorker, { kind: 'ready' | 'failed' }>;

function passOn(options: MemberThreadOptions, message: Passed): void {
  if (message.kind === 'listening') options.onListening(message.sinceMs, message.offsetMs);
  else if (message.kind === 'reports') options.onReports(message.reports);
  else if (message.kind === 'windows') options.onWindows(message.windows);
  else if (message.kind === 'seconds') options.onSeconds(message.seconds);
  else if (message.kind === 'stepped') options.onStepped(message.byMs);
  else options.onRecorded(message.recorded);
}

/** Starts a thread without a source, which ends when its modules are compiled. */
export async function compileThread(): Promise<void> {
  const thread = createMemberThread({
    input: {
      name: 'none',
      role: 'uplink',
      source: { kind: 'live', interfaceName: '', ringMiB: 2, method: 'ring' },
      share: 1,
      windowMs: 10_000,
      windowApplicationsMax: 0,
    },
    clock: systemClock,
    onListening() {},
    onReports() {},
    onWindows() {},
    onSeconds() {},
    onStepped() {},
    onRecorded() {},
    onEnded() {},
  });
  await thread.start().catch(() => {});
}
