/**
 * The programs as child processes: started with their settings, watched, brought back when they die, stopped in order.
 *
 * Each child's standard input is a pipe without a writer: when this process ends, for any reason, the pipe ends
 * and the child stops by itself, so that the next start finds the ports free.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CodedError } from '#common/errors/index.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

export interface ProcessOptions {
  name: string;
  /** Arguments of `./svc`. */
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Command that the process runs under, such as `ip netns exec NAME`. */
  prefix?: readonly string[];
}

export type Processes = ReturnType<typeof createProcesses>;

export interface Supervised {
  readonly name: string;
  /** From now on the process is brought back when it dies. */
  keepAlive(): void;
  /** The sentence that it died with before it was ready, or null while it runs. */
  failure(): string | null;
  readonly pid: number | null;
}

export function createProcesses(dataDir: string) {
  const logDir = join(dataDir, 'logs');
  const listFile = join(dataDir, 'demo', 'processes.json');
  mkdirSync(logDir, { recursive: true });
  const running: { supervised: Supervised; stop(): Promise<void> }[] = [];
  let isStopping = false;

  const notePids = () => {
    const pids = running.map(({ supervised }) => supervised.pid).filter((pid) => pid !== null);
    writeFileSync(listFile, JSON.stringify(pids));
  };

  return {
    /** Starts a process; it is restarted with a pause when it dies, once `keepAlive` was called. */
    start(options: ProcessOptions): Supervised {
      const logFile = join(logDir, `${options.name}.log`);
      const entry = superviseProcess(options, logFile, notePids, () => isStopping);
      running.push(entry);
      notePids();
      return entry.supervised;
    },
    /** Stops all in reverse order of their start. */
    async stopAll(): Promise<void> {
      isStopping = true;
      for (const entry of running.splice(0).reverse()) await entry.stop();
      rmSync(listFile, { force: true });
    },
  };
}

function superviseProcess(
  options: ProcessOptions,
  logFile: string,
  changed: () => void,
  isStopping: () => boolean,
) {
  let child: ChildProcess | null = null;
  let isKept = false;
  let failure: string | null = null;
  let restart: NodeJS.Timeout | null = null;

  const launch = () => {
    // A signal to the whole group may have reached this child before this process.
    if (isStopping()) return;
    const log = openSync(logFile, 'a', 0o600);
    const command = [...(options.prefix ?? []), process.execPath, '--disable-warning=ExperimentalWarning'];
    const args = [...command.slice(1), join(root, 'svc.ts'), ...options.args];
    const env = { ...process.env, ...options.env, SVC_SUPERVISED: '1' };
    // A session of its own: Ctrl-C reaches this process alone, which stops the children in order.
    const started = spawn(command[0]!, args, { cwd: root, env, stdio: ['pipe', log, log], detached: true });
    closeSync(log);
    child = started;
    started.once('error', (error) => {
      failure = error.message;
    });
    started.once('exit', (code, signal) => {
      if (child === started) child = null;
      if (isStopping()) return;
      if (!isKept)
        failure ??= `${lastLine(logFile)} (it ended with ${signal ?? `code ${code}`}; log: ${logFile})`;
      else {
        process.stderr.write(`${options.name} ended (${signal ?? `code ${code}`}), starting it again\n`);
        restart = setTimeout(launch, 500);
      }
    });
    changed();
  };
  launch();

  const supervised: Supervised = {
    name: options.name,
    keepAlive() {
      isKept = true;
    },
    failure: () => failure,
    get pid() {
      return child?.pid ?? null;
    },
  };
  const stop = async () => {
    if (restart) clearTimeout(restart);
    const ending = child;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const gone = new Promise<void>((done) => ending.once('exit', () => done()));
    ending.kill('SIGTERM');
    const timer = setTimeout(() => ending.kill('SIGKILL'), 12_000);
    await gone;
    clearTimeout(timer);
  };
  return { supervised, stop };
}

function lastLine(file: string): string {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.findLast((line) => line.startsWith('svc: '))?.slice(5) ?? lines.at(-1) ?? 'it said nothing';
}

/** Ends what an earlier, killed demo of this folder left running, and waits until it is gone. */
export async function stopLeftovers(dataDir: string): Promise<void> {
  let pids: number[];
  try {
    pids = JSON.parse(readFileSync(join(dataDir, 'demo', 'processes.json'), 'utf8')) as number[];
  } catch {
    return;
  }
  for (const [signal, patienceMs] of [
    ['SIGTERM', 12_000],
    ['SIGKILL', 5_000],
  ] as const) {
    const alive = pids.filter(isOurs);
    for (const pid of alive) process.kill(pid, signal);
    const deadline = Date.now() + patienceMs;
    while (pids.some(isOurs) && Date.now() < deadline) await new Promise((wake) => setTimeout(wake, 50));
  }
  if (pids.some(isOurs)) {
    throw new CodedError(
      'demo.leftovers',
      `Processes of an earlier run do not end: ${pids.filter(isOurs).join(', ')}.`,
    );
  }
}

/** A number may have passed on to another process; ours run `svc.ts`. */
function isOurs(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !/\) [ZX] /.test(stat) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('svc.ts');
  } catch {
    return false;
  }
}
