/**
 * Keeps one process of the world running inside its namespace: started again a second after it ended by itself, and
 * ended for good by `stop`.
 *
 * The channel between the two is the leash: when the supervisor dies, the channel closes and the process ends itself.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { ChildMessage } from '../traffic/run-child.ts';
import type { TalkCounts } from '../traffic/talk.ts';
import { toolPath } from './run-tool.ts';

export interface SupervisedProcess {
  /** Resolves when the process says that it is ready; rejects with `lab.process_failed` when it can't be. */
  start(): Promise<void>;
  stop(): Promise<void>;
  send(message: object): void;
  /** The last counts that the process told, since its own start. */
  counts(): TalkCounts | null;
}

export interface SupervisedProcessOptions {
  namespace: string;
  /** File below `lab/`, and its one argument. */
  file: string;
  input: object;
  reporter: Reporter;
  /** Called at each readiness, the first and those after a restart. */
  ready?: (process: SupervisedProcess) => void;
}

const restartAfterMs = 1000;
const killAfterMs = 2000;

export function superviseProcess(options: SupervisedProcessOptions): SupervisedProcess {
  const reporter = options.reporter.with({ process: options.file, namespace: options.namespace });
  let child: ChildProcess | null = null;
  let isWanted = false;
  let restart: NodeJS.Timeout | null = null;
  let counts: TalkCounts | null = null;

  const launch = (): Promise<void> => {
    const started = spawnChild(options);
    child = started;
    return new Promise((resolve, reject) => {
      let reason = 'it ended before it was ready';
      started.on('message', (message: ChildMessage) => {
        if (message.kind === 'counts') counts = message.counts;
        if (message.kind === 'failed') reason = message.message;
        if (message.kind !== 'ready') return;
        options.ready?.(supervised);
        resolve();
      });
      // Comes instead of `exit` when there is no such program.
      started.on('error', (error) => reject(new CodedError('lab.process_failed', error.message, {}, error)));
      started.on('exit', (code, signal) => {
        reject(new CodedError('lab.process_failed', `${options.file} in ${options.namespace}: ${reason}`));
        if (child !== started || !isWanted) return;
        reporter.warn('process ended, starting it again', { code: code ?? signal, reason });
        restart = setTimeout(() => void launch().catch(() => {}), restartAfterMs);
      });
    });
  };

  const supervised: SupervisedProcess = {
    async start() {
      isWanted = true;
      try {
        await launch();
      } catch (error) {
        await supervised.stop();
        throw error;
      }
    },
    async stop() {
      isWanted = false;
      if (restart) clearTimeout(restart);
      const ending = child;
      child = null;
      if (ending) await endChild(ending);
    },
    send(message) {
      if (child?.connected) child.send(message, () => {});
    },
    counts: () => counts,
  };
  return supervised;
}

function spawnChild(options: SupervisedProcessOptions): ChildProcess {
  const file = fileURLToPath(new URL(`../${options.file}`, import.meta.url));
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', file];
  const [tool, ...rest] = ['ip', 'netns', 'exec', options.namespace, ...node] as [string, ...string[]];
  return spawn(tool, [...rest, JSON.stringify(options.input)], {
    env: { ...process.env, PATH: toolPath },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

/** Closes the channel, which ends the process, and after two seconds kills it; resolves when it has ended. */
async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  // Not `close`: after a disconnect from this side it never comes.
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  if (child.connected) child.disconnect();
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  await ended;
  clearTimeout(timer);
}
