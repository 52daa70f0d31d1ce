/**
 * How many queries of facts run at once in a process. They share the database's connections with the intake, so a few may run and
 * the others wait here; those who ask take turns, so that one with many open pages waits for their own pages alone.
 */
import { CodedError } from '#common/errors/index.ts';

/** Of ten connections; the others are the intake's and the other pages'. */
export const runningMax = 3;
/** Of one who asks: eight pages of a chart and two tables. */
export const waitingMax = 24;

export type QueryGate = ReturnType<typeof createQueryGate>;

interface Waiting {
  start: () => void;
  leave: (error: CodedError) => void;
}

export function createQueryGate() {
  let running = 0;
  /** In the order of their turns. */
  const queues = new Map<string, Waiting[]>();

  const startNext = () => {
    while (running < runningMax) {
      const turn = queues.entries().next().value;
      if (!turn) return;
      const [asker, queue] = turn;
      queues.delete(asker);
      const next = queue.shift()!;
      if (queue.length > 0) queues.set(asker, queue);
      running += 1;
      next.start();
    }
  };

  const waitForTurn = (asker: string, signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted) return reject(left());
      const queue = queues.get(asker) ?? [];
      if (queue.length >= waitingMax) return reject(busy());
      const one: Waiting = { start: resolve, leave: reject };
      queue.push(one);
      queues.set(asker, queue);
      signal?.addEventListener(
        'abort',
        () => {
          const now = queues.get(asker);
          const at = now?.indexOf(one) ?? -1;
          if (!now || at < 0) return;
          now.splice(at, 1);
          if (now.length === 0) queues.delete(asker);
          one.leave(left());
        },
        { once: true },
      );
      startNext();
    });

  return {
    /** Runs the work in its turn. Throws `explorer.busy` where too many of this asker wait, or `explorer.left` where the asker has gone. */
    async run<T>(asker: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
      await waitForTurn(asker, signal);
      try {
        return await work();
      } finally {
        running -= 1;
        startNext();
      }
    },
  };
}

const busy = () =>
  new CodedError(
    'explorer.busy',
    `${waitingMax} of your queries wait already. Close pages of the explorer, or try again in a few seconds.`,
  );

const left = () => new CodedError('explorer.left', 'The query was stopped.');
