/**
 * Proof by upgrading a whole sensor under traffic on a veth, once where the kernel counts too and once where it does not: the sensor of
 * another commit (`SVC_UPGRADE_FROM`, several separated by commas; the last one if not given) is followed by this checkout's, which is
 * then installed again and again. As the package does, the old program is stopped, the new one attaches its counters, and starts.
 *
 * Where the kernel counts, every byte of every minute is counted, and nothing is a gap. Elsewhere that is so but for the seconds in
 * which nothing listened, and these are named. Needs root; `ip netns exec` keeps it from other sensors of the machine.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { interrupt } from '../kernel/kernel-kills.prove.ts';
import { interruptSensor, ownProgram } from './restarts.prove.ts';

export const name = 'sensor-upgrades';

const everyMs = 20_000;
const commits = (process.env.SVC_UPGRADE_FROM ?? 'HEAD').split(',');
const exported = [
  'common',
  'contracts',
  'sensor',
  'package.json',
  'proofs/sensor/collection/restarted-sensor.ts',
];

interface Options {
  /** Upgrades of each of the two sensors. */
  n: number;
  report(line: string): void;
}

export async function prove({ n, report }: Options) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-upgrades-'));
  try {
    const earlier = commits.map((commit) => exportCommit(commit, folder));
    const programs = [...earlier, ...Array<string>(n).fill(ownProgram)];
    const options = { n, signal: 'SIGTERM' as const, everyMs, programs };
    const [counted, heard] = await Promise.all([
      interrupt({ ...options, report: (line) => report(`kernel: ${line}`) }),
      interruptSensor({ ...options, report: (line) => report(`ring: ${line}`) }),
    ]);
    const { offences, heardFrames, heardBytes, deafMs } = heard.verdict;
    for (const offence of offences) report(`ring: ${offence}`);
    const seconds = (ms: number) => (ms / 1000).toFixed(1);
    return {
      claim:
        `upgraded every ${everyMs / 1000} s under traffic on a veth: where the kernel counts, each of ${counted.frames} frames is counted ` +
        `once, in minutes without a gap; where it does not, each of ${heardFrames} (${heardBytes} bytes), and all others were sent in the ` +
        `${seconds(deafMs.reduce((a, b) => a + b, 0))} s, at most ${seconds(Math.max(...deafMs))} s at once, that are named`,
      tried: 2 * n,
      failures: counted.offences.length + offences.length,
      plantedBugsCaught: `${counted.caught} of ${counted.planted}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The sensor of a commit, with the packages of this checkout. */
function exportCommit(commit: string, folder: string): string {
  const program = join(folder, commit);
  mkdirSync(program);
  const archive = execFileSync('git', ['archive', commit, ...exported], {
    cwd: ownProgram,
    maxBuffer: 256 * 1024 * 1024,
  });
  execFileSync('tar', ['-x', '-C', program], { input: archive });
  symlinkSync(join(ownProgram, 'node_modules'), join(program, 'node_modules'));
  return program;
}
