/**
 * Runs a cycle of the sensor under strace, which can kill it or fail its system calls at a chosen call. Linux, root.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CycleSensorInput } from './cycle-sensor.ts';

const childPath = fileURLToPath(new URL('./cycle-sensor.ts', import.meta.url));

/** Every system call of a cycle that writes, syncs, uses file names or talks to the monitor. */
export const cycleCalls = [
  'openat',
  'pwrite64',
  'fsync',
  'fdatasync',
  'ftruncate',
  'rename',
  'unlink',
  'write',
  'writev',
  'connect',
  'sendto',
  'read',
  'recvfrom',
  'close',
] as const;

/** One call of one name, counted from the start of the cycle. */
export interface CallPoint {
  call: string;
  nth: number;
}

export interface TracedCycle {
  /** Exit code; null for a killed process. */
  code: number | null;
  /** Minutes that it reported as committed. */
  committed: number[];
  /** strace's lines, each with its wall time in seconds. */
  trace: string[];
  endedAtSeconds: number;
}

export interface TraceOptions {
  calls: readonly string[];
  /** strace's expression for `-e inject=`, such as `fsync:error=EIO:when=3`. */
  inject?: string;
}

/** Runs one cycle; `traceFile` is overwritten. */
export async function traceCycle(
  input: CycleSensorInput,
  options: TraceOptions,
  traceFile: string,
): Promise<TracedCycle> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', childPath, JSON.stringify(input)],
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
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const ready = new Promise<void>((resolve) => {
    child.stdout!.on('data', (piece: Buffer) => {
      said += piece.toString();
      if (said.startsWith('ready')) resolve();
    });
  });
  await Promise.race([ready, ended]);
  const tracer = await attach(child, options, traceFile);
  child.stdin!.on('error', () => {});
  child.stdin!.end('go\n');
  const code = await ended;
  const endedAtSeconds = Date.now() / 1000;
  await tracer.done;
  const trace = readFileSync(traceFile, 'utf8').split('\n');
  rmSync(traceFile);
  const committed = said
    .split('\n')
    .filter((line) => /^\d+$/.test(line))
    .map(Number);
  return { code, committed, trace, endedAtSeconds };
}

/** How often the cycle makes each of these calls in its busiest thread: the points for kills and failures. */
export async function countCalls(
  input: CycleSensorInput,
  calls: readonly string[],
  folder: string,
): Promise<CallPoint[]> {
  const { trace } = await traceCycle(input, { calls }, join(folder, 'count.trace'));
  const counts = new Map<string, Map<string, number>>();
  for (const line of trace) {
    const [, thread, call] = /^(\d+) +[\d.]+ (\w+)\(/.exec(line) ?? [];
    if (!thread || !call) continue;
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
  options: TraceOptions,
  traceFile: string,
): Promise<{ done: Promise<void> }> {
  const tracer = spawn(
    'strace',
    [
      ...['-f', '-y', '-ttt', '-s', '64', '-o', traceFile, '-e', `trace=${options.calls.join(',')}`],
      ...(options.inject ? ['-e', `inject=${options.inject}`] : []),
      ...['-p', String(child.pid)],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const done = new Promise<void>((resolve, reject) => {
    tracer.once('error', reject);
    tracer.once('close', () => resolve());
  });
  // strace first prints that it is attached.
  await Promise.race([new Promise((resolve) => tracer.stderr!.once('data', resolve)), done]);
  tracer.stderr!.resume();
  return { done };
}
