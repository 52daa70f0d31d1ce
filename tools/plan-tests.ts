/**
 * Which test files are fast and which are slow, which of them share a process, and in which order they begin.
 *
 * A slow file says why in its first line (`// Slow: <reason>`), and runs in `npm run test:slow`; all others run in
 * `npm test`.
 *
 * A test file of a server program loads some 800 modules and compiles schemas and code that the next one needs again: in
 * a shared process this costs half of the processor time. A small one costs less than its process. Each test makes and
 * ends a world of its own, so files do not meet; a file that changes or measures its process says so and has one of its
 * own.
 */
import { readFileSync } from 'node:fs';

/** Files of these folders share processes. The others start programs and use interfaces of the machine. */
const sharingFolders =
  /^((proofs\/)?(monitor|operations|service-kit)|clients|common|contracts|lab\/\w+|sensor(?!\/commands\/)|system-tests)\//;

const slowPattern = /^\/\/ Slow: \S/;

/** A file that is marked so changes its process or measures it. */
const ownProcessPattern = /^\/\/ Own process: /m;

/** Text that changes its process for the files behind it, or measures what the files before it used. */
const changingPattern =
  /process\.(memoryUsage|cpuUsage|resourceUsage)\(|setFlagsFromString\(|process\.env\.\w+ *(\?\?)?=[^=]|delete process\.env|Object\.assign\(process\.env|(?<!\bt\.)\bmock\.timers|process\.(chdir|umask|exitCode)|^after\(.*process\.exit/m;

/** Slow files that begin before all others. */
export interface FirstTests {
  /**
   * They run whole programs through real minutes and mostly wait, so they begin first and go beside the others, which use
   * the processor. Each list is one process.
   */
  waiting: readonly (readonly string[])[];
  /**
   * Of the others they take longest: begun first, none of them runs alone when all others are done. Each list is one
   * process.
   */
  longest: readonly (readonly string[])[];
}

const firstTests: FirstTests = {
  waiting: [
    ['system-tests/journey.test.ts'],
    ['system-tests/kills.test.ts'],
    ['proofs/sensor/collection/restarts.test.ts'],
    ['operations/hypervisors/libvirt/linux-guest.test.ts'],
    ['operations/hypervisors/libvirt/qemu.test.ts'],
    // They share a demo. When its pages are looked at, it has minutes of traffic to show.
    [
      'system-tests/keyboard.test.ts',
      'system-tests/every-page.test.ts',
      'system-tests/tasks.test.ts',
      'system-tests/replay.test.ts',
      // It ends the demo, so it is the last.
      'system-tests/restart.test.ts',
    ],
  ],
  longest: [
    ['monitor/facts/move/move-faults.test.ts'],
    [
      'monitor/facts/clickhouse/clickhouse-conformance.test.ts',
      'monitor/facts/clickhouse/late-inserts.test.ts',
    ],
    ['system-tests/restore/restore.test.ts'],
    ['monitor/commands/move-facts.test.ts'],
    ['proofs/monitor/inbox/faults.test.ts'],
    ['tools/package/package.test.ts'],
    ['system-tests/gone-callers.test.ts'],
    // Each loads both server programs.
    [
      'system-tests/explorer-browser.test.ts',
      'system-tests/sign-on-browser.test.ts',
      'system-tests/feed-faults/feed-faults.test.ts',
      'system-tests/feed-faults/scan-faults.test.ts',
    ],
  ],
};

/**
 * Files of one process. A process of its own costs a file about 2 s of processor time for loading a program; 40 fast files
 * hold some 800 MB at most, and 16 slow ones take less than two minutes.
 */
export const batchMax = { fast: 40, slow: 16 } as const;

export interface TestPlan {
  /** Each in one process, all at once. */
  waiting: string[][];
  /** Each in one process, in the order in which they begin. */
  batches: string[][];
}

/** True when the file's first line says why it is slow. */
export function isSlow(root: string, file: string): boolean {
  return slowPattern.test(readFileSync(`${root}/${file}`, 'utf8'));
}

/**
 * Plans the fast or the slow ones of these files (paths relative to `root`), which begin and share processes in the order
 * given. Throws when a file would change a process that it shares.
 */
export function planTests(
  root: string,
  files: readonly string[],
  part: 'fast' | 'slow',
  { waiting, longest }: FirstTests = firstTests,
): TestPlan {
  const own = files.filter((file) => isSlow(root, file) === (part === 'slow'));
  if (part === 'fast') {
    const { alone, shared } = shareProcesses(root, own, batchMax.fast);
    // They start programs and wait for them, so what uses the processor goes beside them.
    return { waiting: [], batches: [...alone, ...shared] };
  }
  const first = [...waiting, ...longest].flat();
  const gone = first.filter((file) => !own.includes(file));
  if (gone.length > 0)
    throw new Error(`tools/plan-tests.ts names files that are not there or not slow: ${gone.join(', ')}`);
  const rest = own.filter((file) => !first.includes(file));
  const { alone, shared } = shareProcesses(root, rest, batchMax.slow);
  // What ends last is short.
  const batches = [...longest.map((together) => [...together]), ...shared, ...alone];
  return { waiting: waiting.map((together) => [...together]), batches };
}

/** Those that need a process of their own, each alone, and the others in processes of at most `filesMax` files. */
export function shareProcesses(root: string, files: readonly string[], filesMax: number) {
  const sharing = files.filter((file) => mayShareProcess(root, file));
  const shared: string[][] = [];
  for (let at = 0; at < sharing.length; at += filesMax) shared.push(sharing.slice(at, at + filesMax));
  return { alone: files.filter((file) => !sharing.includes(file)).map((file) => [file]), shared };
}

function mayShareProcess(root: string, file: string): boolean {
  if (!sharingFolders.test(file)) return false;
  const text = readFileSync(`${root}/${file}`, 'utf8');
  if (ownProcessPattern.test(text)) return false;
  if (changingPattern.test(text))
    throw new Error(`${file} changes or measures its process: begin it with "// Own process: <reason>"`);
  return true;
}
