/**
 * What a killed parent leaves behind: a postmaster that still runs on our data folder, or that did until the folder was
 * deleted or replaced, and still holds our socket. It is stopped and waited for, never worked around: deleting its pid file
 * would let two servers write the same files.
 */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

/** A killed parent's children wait for init to collect them, which takes a second or two on some machines. */
const collectedWithinMs = 10_000;

/**
 * Stops the servers that `postmaster.pid` and the lock of the socket name, when they are alive, and waits until their numbers
 * are free: a server that starts while the dead one is still a zombie takes it for a living rival and refuses. Only a server
 * of the folder's own user counts: that user writes these files, and may not have root end the server of another.
 */
export async function stopOrphan(dataDir: string, socketDir: string, reporter: Reporter): Promise<void> {
  for (const file of [join(dataDir, 'postmaster.pid'), join(socketDir, '.s.PGSQL.5432.lock')])
    await stopNamed(file, reporter);
}

async function stopNamed(pidFile: string, reporter: Reporter): Promise<void> {
  const lines = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n');
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1) return;
  const { uid } = await stat(dirname(pidFile));
  if ((await stateOf(pid, uid)) === 'running') {
    reporter.warn('stopping a postgresql that an earlier run left behind', { pid });
    await stopRunning(pid, uid);
  }
  if (!(await waitFor(async () => (await stateOf(pid, uid)) === 'gone', collectedWithinMs))) {
    throw new CodedError(
      'postgres.orphan',
      `A dead PostgreSQL of an earlier run (process ${pid}) is not collected by its parent. End that process first.`,
    );
  }
}

async function stopRunning(pid: number, uid: number): Promise<void> {
  for (const [signal, patienceMs] of [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5_000],
  ] as const) {
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    if (await waitFor(async () => (await stateOf(pid, uid)) !== 'running', patienceMs)) return;
  }
  throw new CodedError(
    'postgres.orphan',
    `A PostgreSQL left over from an earlier run (process ${pid}) does not stop.`,
  );
}

async function waitFor(isDone: () => Promise<boolean>, patienceMs: number): Promise<boolean> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    if (await isDone()) return true;
    if (Date.now() > deadline) return false;
    await new Promise((wake) => setTimeout(wake, 20));
  }
}

/** `gone` also for something else that got the number, and for the server of another user. */
async function stateOf(pid: number, uid: number): Promise<'running' | 'dead' | 'gone'> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const of = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1];
  if (of('Name') !== 'postgres' || Number(of('Uid')) !== uid) return 'gone';
  return of('State') === 'Z' || of('State') === 'X' ? 'dead' : 'running';
}
