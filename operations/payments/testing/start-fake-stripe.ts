import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { GatewayIntent, Plan } from './fake-stripe.ts';

export interface FakeStripe extends AsyncDisposable {
  url: string;
  plan(plan: Plan): Promise<void>;
  /** Lets the charges that are still being processed succeed. */
  finishLate(): Promise<void>;
  books(): Promise<GatewayIntent[]>;
  /** Everything that it was told, in order. */
  heard(): Promise<string[]>;
}

/** A gateway of its own process, which a test can't reach into and which survives its callers. */
export async function startFakeStripe(): Promise<FakeStripe> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./fake-stripe.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const url = `http://127.0.0.1:${Number(line.toString())}`;
  const ask = async (path: string, body?: object) =>
    (await fetch(`${url}/testing/${path}`, { method: 'POST', body: JSON.stringify(body ?? {}) })).json();
  return {
    url,
    async plan(plan) {
      await ask('plan', plan);
    },
    async finishLate() {
      await ask('late');
    },
    heard: () => ask('heard') as Promise<string[]>,
    books: () => ask('books') as Promise<GatewayIntent[]>,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
