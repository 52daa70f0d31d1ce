/**
 * Asks open ports what they run. The first run asks all of them; one port that never answers holds a run up for nine
 * minutes, so a run that takes too long is ended and its ports are asked in four runs at once, down to one port each.
 */

/** Runs of one scan at the same time; together they stay within the scan's memory. */
export const runsAtOnce = 4;
const patienceMs = 30_000;
const patienceOfPortMs = 1000;
const groupMax = 256;

export interface IdentificationRun {
  /** True when each port was asked. */
  readonly isFinished: Promise<boolean>;
  kill(): void;
}

export interface IdentifyOptions {
  start(ports: readonly number[]): IdentificationRun;
  /** Resolves after this time of the scan's own, without its pauses, or when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  isEnded(): boolean;
  /** Of all ports, those that were asked. */
  onAsked(count: number): void;
}

/** Resolves with whether every port was asked. */
export async function identifyPorts(ports: readonly number[], options: IdentifyOptions): Promise<boolean> {
  const queue: number[][] = [];
  for (let i = 0; i < ports.length; i += groupMax) queue.push(ports.slice(i, i + groupMax));
  let isComplete = true;
  let asked = 0;
  let running = 0;
  let wake: () => void = () => {};

  async function ask(group: number[]): Promise<void> {
    const run = options.start(group);
    const done = new AbortController();
    let isLate = false;
    if (group.length > 1)
      void options.wait(patienceMs + patienceOfPortMs * group.length, done.signal).then(() => {
        if (done.signal.aborted) return;
        isLate = true;
        run.kill();
      });
    const isFinished = await run.isFinished;
    done.abort();
    if (isLate && !isFinished && !options.isEnded()) queue.push(...split(group));
    else {
      isComplete &&= isFinished;
      asked += group.length;
      options.onAsked(asked);
    }
  }

  while (queue.length > 0 || running > 0) {
    if (options.isEnded()) queue.length = 0;
    while (queue.length > 0 && running < runsAtOnce) {
      running += 1;
      void ask(queue.shift()!).finally(() => {
        running -= 1;
        wake();
      });
    }
    if (running > 0)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  }
  return isComplete && asked === ports.length;
}

function split(group: readonly number[]): number[][] {
  const size = Math.ceil(group.length / runsAtOnce);
  const parts: number[][] = [];
  for (let i = 0; i < group.length; i += size) parts.push(group.slice(i, i + size));
  return parts;
}
