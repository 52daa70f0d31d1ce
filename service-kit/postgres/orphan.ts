/**
 * What a killed parent leaves behind: a postmaster that still runs on our data folder. It is stopped and waited for,
 * never worked around: deleting its pid file would let two servers write the same files.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

/** Stops the server that `postmaster.pid` names, when it is alive and serves this folder. */
export async function stopOrphan(dataDir: string, reporter: Reporter): Promise<void> {
  const lines = (await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1 || !(await isPostmaster(pid))) return;
  reporter.warn('stopping a postgresql that an earlier run left behind', { pid });
  for (const [signal, patienceMs] of [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5_000],
  ] as const) {
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    const deadline = Date.now() + patienceMs;
    while (Date.now() < deadline) {
      if (!(await isPostmaster(pid))) return;
      await new Promise((wake) => setTimeout(wake, 20));
    }
  }
  throw new CodedError(
    'postgres.orphan',
    `A PostgreSQL left over from an earlier run (process ${pid}) does not stop.`,
  );
}

/** False for processes that are gone, are zombies, or are something else that got the number. */
async function isPostmaster(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const match = /^\d+ \((.*)\) (.)/s.exec(stat);
  return match !== null && match[1] === 'postgres' && match[2] !== 'Z' && match[2] !== 'X';
}
