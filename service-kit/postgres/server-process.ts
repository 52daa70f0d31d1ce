/** The server process of an embedded PostgreSQL: started, watched, and started again when it dies. */
import type { ChildProcess } from 'node:child_process';
import { open } from 'node:fs/promises';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { serverSettings, stopOrphan, waitUntilAnswering } from './cluster.ts';
import { dataFolder, type PostgresRuntime } from './runtime.ts';

interface ServerProcessOptions {
  dataDir: string;
  logFile: string;
  socketDir: () => string;
  /** Further `name=value` settings of the server. */
  settings: Readonly<Record<string, string>> | undefined;
  reporter: Reporter;
}

export type ServerProcess = ReturnType<typeof createServerProcess>;

/** Creates the process of one start: what was stopped is not launched again. */
export function createServerProcess(options: ServerProcessOptions) {
  const { reporter } = options;
  let child: ChildProcess | null = null;
  let isStopping = false;
  let relaunched: Promise<void> = Promise.resolve();

  /** Starts the server and waits until it answers. From then on it is started again whenever it ends. */
  async function launch(runtime: PostgresRuntime): Promise<void> {
    await stopOrphan(options.dataDir, options.socketDir(), reporter);
    if (isStopping) throw stoppedMeanwhile();
    const started = await spawnServer(options, runtime);
    child = started;
    let hasAnswered = false;
    started.once('exit', (code, signal) => {
      if (child !== started) return;
      child = null;
      // A server that never answered is handled by the wait below.
      if (hasAnswered && !isStopping) relaunched = relaunch(runtime, code, signal);
    });
    await waitUntilAnswering(started, options.socketDir(), options.logFile);
    hasAnswered = true;
    if (isStopping) throw stoppedMeanwhile();
    // It answered and died in the same instant: no other code has noticed.
    if (child !== started && !isStopping) throw new CodedError('postgres.died', 'PostgreSQL died at once.');
  }

  async function relaunch(runtime: PostgresRuntime, code: number | null, signal: string | null) {
    reporter.warn('postgresql ended, starting it again', { code, signal });
    for (let attempt = 1; !isStopping; attempt += 1) {
      try {
        await launch(runtime);
        reporter.info('postgresql is back');
        return;
      } catch (error) {
        if (isStopping) return;
        if (attempt % 10 === 1) reporter.error('postgresql does not start', { error: describeError(error) });
        await new Promise((wake) => setTimeout(wake, Math.min(200 * attempt, 3_000)));
      }
    }
  }

  /** Fast shutdown: roll back what is open, write a checkpoint, leave. */
  async function endChild(): Promise<void> {
    const running = child;
    child = null;
    if (running && running.exitCode === null && running.signalCode === null) {
      await endProcess(running, 'SIGINT', 20_000);
    }
  }

  return {
    launch,
    /** Ends the server, also one that is just started again; when this resolves, none runs and none will. */
    async stop() {
      isStopping = true;
      await endChild();
      // It may have been between two servers: what it started meanwhile would hold this process forever.
      await relaunched;
      await endChild();
    },
  };
}

function stoppedMeanwhile(): CodedError {
  return new CodedError('postgres.stopped', 'PostgreSQL was stopped while it started.');
}

/** Starts the server's process; it may not answer yet. */
export async function spawnServer(
  options: Omit<ServerProcessOptions, 'reporter'>,
  runtime: PostgresRuntime,
): Promise<ChildProcess> {
  const log = await open(options.logFile, 'a', 0o600);
  const settings = { ...serverSettings(options.socketDir()), ...options.settings };
  const args = [
    '-D',
    dataFolder,
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  // A session of its own: Ctrl-C in a terminal must reach us first, or clients lose their server mid-request.
  const started = runtime.spawn('postgres', options.dataDir, args, {
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  });
  await log.close();
  return started;
}

async function endProcess(child: ChildProcess, signal: NodeJS.Signals, patienceMs: number): Promise<void> {
  const gone = new Promise<void>((done) => child.once('exit', () => done()));
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGQUIT'), patienceMs);
  await gone;
  clearTimeout(timer);
}
