/**
 * The thread that lets scans send or stops them. It has nothing else to do, so that a busy main thread does not delay it.
 */
import { parentPort } from 'node:worker_threads';
import { type FromPacer, SharedState, type ToPacer } from './index.ts';
import { PacketBucket } from './packet-bucket.ts';
import { openPacketCounter, type PacketCounter } from './packet-counter.ts';

const lookEveryMs = 4;

/** One scan that is paced. */
class PacedScan {
  readonly #counter: PacketCounter;
  readonly #bucket = new PacketBucket(performance.now());
  readonly #shared: Int32Array;
  readonly #processIds = new Set<number>();
  #isRunning = true;

  constructor(counter: PacketCounter, shared: Int32Array) {
    this.#counter = counter;
    this.#shared = shared;
  }

  watch(processId: number): void {
    this.#processIds.add(processId);
    if (!this.#isRunning) signal(processId, 'SIGSTOP');
  }

  forget(processId: number): void {
    this.#processIds.delete(processId);
  }

  look(): void {
    const packets = this.#counter.take();
    Atomics.add(this.#shared, SharedState.packets, packets);
    const maySend = this.#bucket.take(packets, performance.now());
    const isRunning = maySend && Atomics.load(this.#shared, SharedState.isPaused) === 0;
    if (isRunning === this.#isRunning) return;
    this.#isRunning = isRunning;
    if (!maySend) Atomics.add(this.#shared, SharedState.holds, 1);
    for (const processId of this.#processIds) signal(processId, isRunning ? 'SIGCONT' : 'SIGSTOP');
  }

  close(): void {
    this.#counter.close();
  }
}

const scans = new Map<string, PacedScan>();
let timer: NodeJS.Timeout | null = null;

function signal(processId: number, name: 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(processId, name);
  } catch {
    // It has ended.
  }
}

function open(message: Extract<ToPacer, { kind: 'open' }>): FromPacer {
  const { scanId, interfaceName, sourceAddress, address, shared } = message;
  try {
    const counter = openPacketCounter(interfaceName, sourceAddress, address);
    scans.set(scanId, new PacedScan(counter, new Int32Array(shared)));
    return { kind: 'opened', scanId, fault: null };
  } catch (error) {
    return { kind: 'opened', scanId, fault: error instanceof Error ? error.message : String(error) };
  }
}

function look(): void {
  for (const scan of scans.values()) scan.look();
}

parentPort!.on('message', (message: ToPacer) => {
  const scan = scans.get(message.scanId);
  if (message.kind === 'open') parentPort!.postMessage(open(message));
  else if (message.kind === 'watch') scan?.watch(message.processId);
  else if (message.kind === 'forget') scan?.forget(message.processId);
  else {
    scan?.close();
    scans.delete(message.scanId);
  }
  if (scans.size > 0) timer ??= setInterval(look, lookEveryMs);
  else if (timer !== null) {
    clearInterval(timer);
    timer = null;
  }
});
