/** Processes that click, and the answers to their clicks. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { CustomerActor } from '#operations/accounts/index.ts';
import type { Bug, Click, ClickAnswer, Plant } from './scan-worker.ts';

const workerFile = fileURLToPath(new URL('./scan-worker.ts', import.meta.url));

export type ScanWorkers = Awaited<ReturnType<typeof startScanWorkers>>;

export async function startScanWorkers(databaseUrl: string, processes: number) {
  const waiting = new Map<number, PromiseWithResolvers<ClickAnswer>>();
  const children = Array.from({ length: processes }, () =>
    spawn(process.execPath, [workerFile, databaseUrl], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  await Promise.all(
    children.map((child) => {
      const ready = Promise.withResolvers<void>();
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line === 'ready') return ready.resolve();
        const answer = JSON.parse(line) as ClickAnswer;
        waiting.get(answer.id)?.resolve(answer);
        waiting.delete(answer.id);
      });
      child.once('exit', (code) => {
        const failure = new Error(`a process that clicks ended with ${code}`);
        ready.reject(failure);
        for (const { reject } of waiting.values()) reject(failure);
      });
      return ready.promise;
    }),
  );
  let clicks = 0;
  return {
    processes,
    /** The servers that each process clicks, all at once; one answer for each. */
    click(actor: CustomerActor, serverIdsOf: readonly (readonly number[])[]): Promise<ClickAnswer[]> {
      const answers: Promise<ClickAnswer>[] = [];
      for (const [index, serverIds] of serverIdsOf.entries()) {
        const lines = serverIds.map((serverId) => {
          clicks += 1;
          const answer = Promise.withResolvers<ClickAnswer>();
          waiting.set(clicks, answer);
          answers.push(answer.promise);
          return `${JSON.stringify({ id: clicks, actor, serverId } satisfies Click)}\n`;
        });
        children[index]!.stdin.write(lines.join(''));
      }
      return Promise.all(answers);
    },
    /** Plants a bug in each process, in place of the one before. */
    plant(bug: Bug): void {
      for (const child of children) child.stdin.write(`${JSON.stringify({ bug } satisfies Plant)}\n`);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(
        children.map((child) => {
          child.stdin.end();
          return child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null;
        }),
      );
    },
  };
}
