import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Received } from './receiver.ts';

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Starts a receiver as a process of its own. */
export async function startReceiver() {
  const file = fileURLToPath(new URL('./receiver.ts', import.meta.url));
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [first] = (await once(lines, 'line')) as [string];
  const received: Received[] = [];
  lines.on('line', (line) => received.push(JSON.parse(line) as Received));
  return {
    url: `http://127.0.0.1:${(JSON.parse(first) as { port: number }).port}`,
    /** All that arrived so far, in order. */
    received,
    /** Lets it know a secret. */
    learn: (secret: string) => void child.stdin.write(`${secret}\n`),
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    },
  };
}
