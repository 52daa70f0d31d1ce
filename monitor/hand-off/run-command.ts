/**
 * Starts a command of the folder of commands, without a shell and without the settings of this process.
 *
 * It gets its arguments as they are and JSON on standard input, which it need not read. What it writes is kept up to a
 * bound. After the time limit its whole process group is killed, so that no child of it goes on.
 */
import { spawn } from 'node:child_process';
import { access, constants, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#common/clock/index.ts';

/** A command has this long. Shorter than a claim of an action. */
export const commandSeconds = 20;
export const outputMax = 8192;
/** After the command has ended its output may come for so long: a child that it left behind may hold it open. */
const drainMs = 1_000;
/** A file name that is no path, no option and needs no quoting. */
const nameShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface CommandResult {
  /** Null: it ended with status 0. */
  error: string | null;
  /** False: it was not started, so it had no effect. */
  wasStarted: boolean;
  /** Standard output and standard error, as they came. */
  output: string;
}

/** Names of the executable files in the folder of commands. Null: there is no such folder, or none is set. */
export async function listCommands(folder: string | null): Promise<string[]> {
  if (folder === null) return [];
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => nameShape.test(name))
      .map(async (name) => ((await refusalOf(folder, name)) ? [] : [name])),
  );
  return found.flat().sort();
}

/** Why this file is not started; null when it may be. */
async function refusalOf(folder: string, name: string): Promise<string | null> {
  if (!nameShape.test(name)) return 'its name is not allowed';
  const file = join(folder, name);
  const found = await stat(file).catch(() => null);
  if (!found) return `${name} is not in the folder of commands`;
  if (!found.isFile()) return `${name} is not a file`;
  if ((found.mode & 0o002) !== 0) return `${name} can be changed by every user of this machine (chmod o-w)`;
  const isExecutable = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
  return isExecutable ? null : `${name} is not executable (chmod +x)`;
}

/** Never throws. */
export async function runCommand(
  folder: string | null,
  name: string,
  args: readonly string[],
  input: object,
  { clock, seconds = commandSeconds }: { clock: Clock; seconds?: number },
): Promise<CommandResult> {
  const refusal = folder === null ? 'SVC_HAND_OFF_COMMANDS is not set' : await refusalOf(folder, name);
  if (refusal !== null)
    return { error: `the command was not started: ${refusal}`, wasStarted: false, output: '' };
  const child = spawn(join(folder!, name), args, {
    cwd: '/',
    detached: true,
    env: { PATH: searchPath, LANG: 'C.UTF-8' },
    shell: false,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const pieces: Buffer[] = [];
  let length = 0;
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => {
      // What is beyond the bound is read and dropped, so that a command that writes much does not hang.
      if (length < outputMax) pieces.push(piece.subarray(0, outputMax - length));
      length += piece.length;
    });
  // A command that does not read its input closes it.
  child.stdin.on('error', () => {});
  child.stdin.end(`${JSON.stringify(input)}\n`);
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const ended = new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(`the command was not started: ${error.message}`));
    child.once('exit', (code, signal) => resolve(exitText(code, signal)));
  });
  const timer = new AbortController();
  const limit = clock.wait(seconds * 1000, timer.signal).then(() => 'limit' as const);
  const outcome = await Promise.race([ended, limit]);
  if (outcome === 'limit') killGroup(child.pid);
  else await Promise.race([closed, clock.wait(drainMs, timer.signal)]);
  timer.abort();
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  const error = outcome === 'limit' ? `the command did not end within ${seconds} s and was killed` : outcome;
  return { error, wasStarted: child.pid !== undefined, output: readable(Buffer.concat(pieces), length) };
}

function exitText(code: number | null, signal: NodeJS.Signals | null): string | null {
  if (code === 0) return null;
  return code === null ? `the command was ended by ${signal}` : `the command ended with status ${code}`;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}

/** Text that PostgreSQL and a page take: no control characters but line breaks and tabs. */
function readable(bytes: Buffer, length: number): string {
  const text = bytes
    .toString('utf8')
    .replaceAll('\r\n', '\n')
    .replace(/[^\P{Cc}\t\n]/gu, '\ufffd');
  return length > outputMax ? `${text}\n… (${length} bytes in all)` : text;
}
