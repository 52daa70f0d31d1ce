/**
 * The main thread's handle on one capture: starts its thread, starts it again when it fails, stops it.
 *
 * The first opening must succeed, so that an operator reads at once what is missing. Later failures (an interface
 * that went away) are tried again every few seconds, and the minutes between are gaps.
 */
import { Worker } from 'node:worker_threads';
import type { Clock } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { FromWorker, LocalAddresses, ToWorker } from './capture-messages.ts';
import type { CaptureSpec } from './capture-spec.ts';

const reopenEveryMs = 2000;
/** A thread that does not end by itself when asked is ended. */
const stopPatienceMs = 5000;

export interface CaptureThreadOptions {
  spec: CaptureSpec;
  clock: Clock;
  reporter: Reporter;
  onListening(sinceMs: number): void;
  onReports(reports: Extract<FromWorker, { kind: 'reports' }>['reports']): void;
  onFailed(): void;
}

export interface CaptureThread {
  /** Resolves when the source is open. Rejects with what is missing. */
  start(): Promise<void>;
  /** Sets what is local; frames count from the first call on. */
  setLocal(local: LocalAddresses): void;
  /** Resolves after the last reports have come in. */
  stop(): Promise<void>;
}

/** Makes the handle; no thread runs before `start`. */
export function createCaptureThread(options: CaptureThreadOptions): CaptureThread {
  const { spec, clock, reporter } = options;
  const stopping = new AbortController();
  let worker: Worker | null = null;
  let ended: Promise<void> = Promise.resolve();
  let local: LocalAddresses | null = null;
  let hasBegun = false;
  let isUp = false;

  const tell = (message: ToWorker) => worker?.postMessage(message);

  /** Starts a thread. Resolves with null when its source is open, else with why it is not. */
  function spawn(): Promise<CodedError | null> {
    hasBegun = false;
    isUp = false;
    const started = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: { spec },
      name: `capture ${spec.name}`,
    });
    worker = started;
    return new Promise((resolve) => {
      let failure: CodedError | null = null;
      started.on('message', (message: FromWorker) => {
        if (message.kind === 'ready') {
          isUp = true;
          resolve(null);
          beginOrChange();
        } else if (message.kind === 'listening') options.onListening(message.sinceMs);
        else if (message.kind === 'reports') options.onReports(message.reports);
        else failure = new CodedError(message.code, message.message);
      });
      started.on('error', (error) => {
        failure = new CodedError('capture.failed', `Capture ${spec.name} crashed: ${describeError(error)}`);
      });
      ended = new Promise((resolveEnded) => {
        started.on('exit', () => {
          worker = null;
          const why = failure ?? new CodedError('capture.failed', `Capture ${spec.name} ended.`);
          resolve(why);
          resolveEnded();
          if (isUp && !stopping.signal.aborted) void reopen(why);
        });
      });
    });
  }

  async function reopen(why: CodedError): Promise<void> {
    options.onFailed();
    reporter.error('capture failed, trying again', { capture: spec.name, why: why.message });
    while (!stopping.signal.aborted) {
      await clock.wait(reopenEveryMs, stopping.signal);
      if (stopping.signal.aborted) return;
      if ((await spawn()) === null) {
        reporter.info('capture listens again', { capture: spec.name });
        return;
      }
    }
  }

  function beginOrChange(): void {
    if (!local) return;
    tell({ kind: hasBegun ? 'local' : 'begin', local });
    hasBegun = true;
  }

  return {
    async start() {
      const why = await spawn();
      if (why) throw why;
    },
    setLocal(next) {
      local = next;
      if (isUp) beginOrChange();
    },
    async stop() {
      stopping.abort();
      const stubborn = worker;
      tell({ kind: 'stop' });
      const patience = new AbortController();
      await Promise.race([ended, clock.wait(stopPatienceMs, patience.signal)]);
      patience.abort();
      await stubborn?.terminate();
    },
  };
}
