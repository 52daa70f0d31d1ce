/** The frame of the processes that a world's supervisor spawns: input, readiness, counts, and an end that never hangs. */
import type { TalkCounts } from './talk.ts';

export type ChildMessage =
  | { kind: 'ready' }
  | { kind: 'failed'; message: string }
  | { kind: 'counts'; counts: TalkCounts };

const countsEveryMs = 5_000;

/**
 * Runs `work` with the JSON of the first argument. The process ends when its supervisor's channel closes: a killed
 * supervisor leaves no client talking.
 */
export async function runChild<Input>(
  work: (input: Input, signal: AbortSignal, counts: TalkCounts) => Promise<void>,
): Promise<void> {
  const stopping = new AbortController();
  const counts: TalkCounts = { held: 0, failed: 0, lastFailure: null };
  const end = () => {
    stopping.abort();
    process.exit(0);
  };
  process.on('disconnect', end);
  // Ctrl-C and a service manager's SIGTERM reach the whole group; the supervisor ends its children in its own order.
  process.on('SIGTERM', () => {});
  process.on('SIGINT', () => {});
  try {
    await work(JSON.parse(process.argv[2] ?? '{}') as Input, stopping.signal, counts);
  } catch (error) {
    say({ kind: 'failed', message: (error as Error).message });
    process.exitCode = 1;
    process.disconnect?.();
    return;
  }
  say({ kind: 'ready' });
  setInterval(() => say({ kind: 'counts', counts }), countsEveryMs).unref();
}

function say(message: ChildMessage): void {
  // The channel may close between the look and the send; `disconnect` ends the process then.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
