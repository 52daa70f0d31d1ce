/**
 * Runs a part of the sensor as a process under strace, which can kill it or fail its system calls at a chosen call. The
 * process prints `ready` when its modules are loaded, and begins with a line on its standard input. Linux, root.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** One call of one name, counted from the start. */
export interface CallPoint {
  call: string;
  nth: number;
}

export interface TraceOptions {
  calls: readonly string[];
  /** strace's expression for `-e inject=`, such as `fsync:error=EIO:when=3`. */
  inject?: string;
  /** Traces the first thread alone, and not the processes that it starts. */
  isFirstThreadOnly?: boolean;
}

export interface TracedProcess {
  child: ChildProcess;
  /** Resolves when both have ended. `code` is null for a killed process; `trace` has strace's lines. */
  ended: Promise<{ code: number | null; said: string; trace: string[] }>;
}

/** Starts the process with its input as JSON; without `options` it is not traced. `traceFile` is overwritten. */
export async function startTraced(
  path: string,
  input: object,
  options: TraceOptions | null,
  traceFile: string,
): Promise<TracedProcess> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', path, JSON.stringify(input)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        ...process.env,
        // Certificates from the environment would be read during the cycle.
        NODE_EXTRA_CA_CERTS: '',
        // Avoids compiling the same modules again, half of a cycle's processor time.
        NODE_COMPILE_CACHE: join(dirname(traceFile), 'compiled'),
      },
    },
  );
  let said = '';
  const gone = new Promise<number | null>((resolve) => child.once('close', resolve));
  const ready = new Promise<void>((resolve) => {
    child.stdout!.on('data', (piece: Buffer) => {
      said += piece.toString();
      if (said.startsWith('ready')) resolve();
    });
  });
  child.stdin!.on('error', () => {});
  await Promise.race([ready, gone]);
  const tracer = options ? await attach(child, options, traceFile) : null;
  const ended = gone.then(async (code) => {
    if (!tracer) return { code, said, trace: [] };
    await tracer.done;
    const trace = readFileSync(traceFile, 'utf8').split('\n');
    rmSync(traceFile);
    return { code, said, trace };
  });
  return { child, ended };
}

/** How often each of these calls was made in its busiest thread: the points for kills and failures. */
export function countPoints(trace: readonly string[]): CallPoint[] {
  const counts = new Map<string, Map<string, number>>();
  for (const line of trace) {
    const [, thread = '', call] = /^(?:(\d+) +)?[\d.]+ (\w+)\(/.exec(line) ?? [];
    if (!call) continue;
    const threads = counts.get(call) ?? new Map<string, number>();
    counts.set(call, threads.set(thread, (threads.get(thread) ?? 0) + 1));
  }
  return [...counts].flatMap(([call, threads]) =>
    Array.from({ length: Math.max(...threads.values()) }, (_, i) => ({ call, nth: i + 1 })),
  );
}

/** Attaches strace. Resolves when it is attached; the inner promise resolves when it ends. */
async function attach(
  child: ChildProcess,
  { calls, inject, isFirstThreadOnly = false }: TraceOptions,
  traceFile: string,
): Promise<{ done: Promise<void> }> {
  const tracer = spawn(
    'strace',
    [
      ...(isFirstThreadOnly ? [] : ['-f']),
      ...['-y', '-ttt', '-s', '64', '-o', traceFile, '-e', `trace=${calls.join(',')}`],
      ...(inject ? ['-e', `inject=${inject}`] : []),
      ...['-p', String(child.pid)],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const done = new Promise<void>((resolve, reject) => {
    tracer.once('error', reject);
    tracer.once('close', () => resolve());
  });
  // strace first prints that it is attached.
  await Promise.race([once(tracer.stderr!, 'data'), done]);
  tracer.stderr!.resume();
  return { done };
}
