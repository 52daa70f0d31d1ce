/**
 * Keeps each scan's packets below the ceiling, counted on the wire, and pauses scans.
 *
 * A thread counts the packets of each scan every few milliseconds, and stops and continues its processes by SIGSTOP and
 * SIGCONT. Both reasons to stop, the ceiling and a pause, are decided in that one place.
 */
import { Worker } from 'node:worker_threads';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { ScanTask } from '../scan.ts';

/** One scan that is paced. */
export interface Pace {
  /** The process is stopped and continued with the scan from now on. */
  watch(processId: number): void;
  /** Call it when the process has ended: its id may be used again. */
  forget(processId: number): void;
  pause(): void;
  resume(): void;
  /** Sent so far. */
  packets(): number;
  /** How often the ceiling held it up. */
  holds(): number;
  close(): void;
}

export type Pacer = ReturnType<typeof createPacer>;

/** Creates the pacer; its thread starts with the first scan. `onFailed`: the thread ended, so scans must end too. */
export function createPacer(onFailed: (why: string) => void = () => {}) {
  let worker: Worker | null = null;
  const waiting = new Map<string, (answer: FromPacer) => void>();

  function fail(why: string): void {
    worker = null;
    for (const [scanId, answer] of waiting) answer({ kind: 'opened', scanId, fault: why });
    waiting.clear();
    onFailed(why);
  }

  function thread(): Worker {
    if (worker !== null) return worker;
    const started = new Worker(new URL('./pacer-thread.ts', import.meta.url));
    started.on('message', (answer: FromPacer) => {
      waiting.get(answer.scanId)?.(answer);
      waiting.delete(answer.scanId);
    });
    started.on('error', (error) => fail(describeError(error)));
    started.on('exit', () => worker === started && fail('its thread ended'));
    started.unref();
    worker = started;
    return started;
  }

  return {
    /** Counts from now on. Throws a `CodedError` where that is not possible: then nothing may be sent. */
    async open({
      scanId,
      interfaceName,
      sourceAddress,
      address,
    }: Pick<ScanTask, 'scanId' | 'interfaceName' | 'sourceAddress' | 'address'>): Promise<Pace> {
      const shared = new SharedArrayBuffer(sharedBytes);
      const state = new Int32Array(shared);
      const used = thread();
      const say = (message: ToPacer) => used.postMessage(message);
      const answered = new Promise<FromPacer>((resolve) => waiting.set(scanId, resolve));
      // The thread alone does not keep the process running; an answer that is due does.
      used.ref();
      say({ kind: 'open', scanId, interfaceName, sourceAddress, address, shared });
      const { fault } = await answered;
      used.unref();
      if (fault !== null) throw new CodedError('scan.not_counted', fault);
      return {
        watch: (processId) => say({ kind: 'watch', scanId, processId }),
        forget: (processId) => say({ kind: 'forget', scanId, processId }),
        pause: () => void Atomics.store(state, SharedState.isPaused, 1),
        resume: () => void Atomics.store(state, SharedState.isPaused, 0),
        packets: () => Atomics.load(state, SharedState.packets),
        holds: () => Atomics.load(state, SharedState.holds),
        close: () => say({ kind: 'close', scanId }),
      };
    },
    /** Ends the thread. */
    async close(): Promise<void> {
      const ending = worker;
      worker = null;
      await ending?.terminate();
    },
  };
}

/** What the main thread and the pacer's say to each other. */

/** Places in the memory that both threads share for a scan. */
export const SharedState = { isPaused: 0, packets: 1, holds: 2 } as const;
const sharedBytes = 12;

export type ToPacer =
  | {
      kind: 'open';
      scanId: string;
      interfaceName: string;
      sourceAddress: string;
      address: string;
      shared: SharedArrayBuffer;
    }
  | { kind: 'watch'; scanId: string; processId: number }
  | { kind: 'forget'; scanId: string; processId: number }
  | { kind: 'close'; scanId: string };

/** Answer to `open`; `fault` is a sentence. */
export interface FromPacer {
  kind: 'opened';
  scanId: string;
  fault: string | null;
}
