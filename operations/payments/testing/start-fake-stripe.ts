import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { GatewayIntent, Plan } from './fake-stripe.ts';

export type FakeStripe = Awaited<ReturnType<typeof startFakeStripe>>;

/** A gateway of its own process, which a test can't reach into and which survives its callers. */
export async function startFakeStripe() {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./fake-stripe.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const url = `http://127.0.0.1:${Number(line.toString())}`;
  const ask = async (path: string, body?: object) =>
    (await fetch(`${url}/testing/${path}`, { method: 'POST', body: JSON.stringify(body ?? {}) })).json();
  return {
    url,
    async plan(plan: Plan) {
      await ask('plan', plan);
    },
    /** Lets the charges that are still being processed succeed. */
    async finishLate() {
      await ask('late');
    },
    /** Everything that it was told, in order. */
    heard: (): Promise<string[]> => ask('heard') as Promise<string[]>,
    books: (): Promise<GatewayIntent[]> => ask('books') as Promise<GatewayIntent[]>,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
