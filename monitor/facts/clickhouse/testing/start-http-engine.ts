/** Starts and kills a ClickHouse of a test (`http-engine.ts`). */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What a test tells its server. */
export type EngineCommand =
  | {
      kind: 'fault';
      /** Inserts that are answered before. */
      after: number;
      /** `frozen`: nothing is answered until it is thawed, and then everything. */
      how: 'killed before' | 'killed after' | 'refused' | 'frozen';
      /** With `refused`: the server's answer, once. */
      error?: { code: number; name: string };
    }
  | { kind: 'thawed' };

export type HttpEngine = Awaited<ReturnType<typeof startHttpEngine>>;

export async function startHttpEngine() {
  const folder = mkdtempSync(join(process.env.SVC_TEST_MEMORY_DIR ?? tmpdir(), 'svc-clickhouse-'));
  const password = randomUUID();
  let port = 0;
  let child: ChildProcess;
  const start = async () => {
    const path = fileURLToPath(new URL('./http-engine.ts', import.meta.url));
    child = fork(path, [folder, String(port)], {
      env: { ...process.env, SVC_TEST_CLICKHOUSE_PASSWORD: password },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const [message] = (await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => {
        throw new Error('The ClickHouse of the test did not start.');
      }),
    ])) as [{ port: number }];
    port = message.port;
  };
  /** Resolves when the process has ended by itself, as a fault makes it. */
  const ended = async () => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  const kill = async () => {
    child.kill('SIGKILL');
    await ended();
  };
  await start();
  return {
    /** For `SVC_FACTS_URL`. */
    get url(): string {
      return `clickhouse://facts:${password}@127.0.0.1:${port}/facts`;
    },
    password,
    tell: (command: EngineCommand) => child.send(command),
    /** Resolves when a fault has frozen it. */
    async frozen() {
      await once(child, 'message');
    },
    ended,
    kill,
    /** Again on its port and its data. */
    restart: start,
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
