/** Runs virsh, never through a shell: every argument is one element of an array, and what it says is plain English. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CodedError, describeError } from '#common/errors/index.ts';
import { checked } from './domain-xml.ts';

/** Runs one virsh command; resolves with its standard output. */
export type Virsh = (command: readonly string[]) => Promise<string>;

const outputBytesMax = 8 * 1024 * 1024;
/** The first command of a connection starts libvirt's own processes, which a busy node takes long for. */
const timeoutMsDefault = 60_000;

/** Complaints that the same command will always get again; anything else may be better next time. */
const finalComplaints =
  /error: (failed to get domain|XML error|XML document failed|unsupported configuration|invalid argument|Storage pool not found|unsupported|internal error: unable to find any (emulator|master))/i;

/** Makes the runner for one connection. A failure is a `hypervisor.refused`, `hypervisor.failed` or `.unreachable`. */
export function createVirsh(uri: string, timeoutMs = timeoutMsDefault): Virsh {
  return async (command) => {
    const { code, out, err } = await run('virsh', ['-q', '-c', uri, ...command], undefined, timeoutMs);
    if (code === 0) return out;
    throw virshError(command[0]!, err);
  };
}

/** What virsh complained about, as an error whose code says whether another attempt makes sense. */
export function virshError(command: string, complaint: string): CodedError {
  const text = complaint
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
    .slice(0, 500);
  const code = /failed to connect to the hypervisor/i.test(complaint)
    ? 'hypervisor.unreachable'
    : finalComplaints.test(complaint)
      ? 'hypervisor.refused'
      : 'hypervisor.failed';
  return new CodedError(code, `virsh ${command}: ${text || 'failed without a word'}`, { complaint: text });
}

/** What virsh said of a failed command; empty for another error. */
export function complaintOf(error: unknown): string {
  return error instanceof CodedError ? String(error.details.complaint ?? '') : '';
}

/** The guest as it runs, or as it starts next with `--inactive`; `hypervisor.refused` when there is none. */
export async function readXml(call: Virsh, name: string, ...options: string[]): Promise<string> {
  try {
    return await call(['dumpxml', checked('name', name), ...options]);
  } catch (error) {
    if (!/failed to get domain|Domain not found/i.test(complaintOf(error))) throw error;
    throw new CodedError('hypervisor.refused', `The node has no guest ${name}.`);
  }
}

/** Waits for a command whose complaint may mean that all is as it should be. */
export async function tolerate(work: Promise<string>, isFine: RegExp): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isFine.test(complaintOf(error))) throw error;
  }
}

/** Writes a text that virsh reads into a folder of its own, passes the file on, and always removes the folder. */
export async function withFile<T>(name: string, text: string, use: (file: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-virsh-'));
  try {
    const file = join(folder, name);
    await writeFile(file, text, { mode: 0o600 });
    return await use(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs a program to its end, with a limit on its time and its words; what it started ends with it. */
export function run(
  program: string,
  args: readonly string[],
  input?: string,
  timeoutMs = timeoutMsDefault,
): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      // The words of a translated virsh could not be told apart.
      env: { ...process.env, LC_ALL: 'C', LANGUAGE: 'C' },
      // A group of its own: the ssh that virsh started would keep its pipes open, and so the caller waiting.
      detached: true,
    });
    let isCut = false;
    const cut = () => {
      isCut = true;
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    };
    const timer = setTimeout(cut, timeoutMs);
    let out = '';
    let err = '';
    const gather = (piece: Buffer, isError: boolean) => {
      if (isError) err += piece;
      else out += piece;
      if (out.length + err.length > outputBytesMax) cut();
    };
    child.stdout.on('data', (piece: Buffer) => gather(piece, false));
    child.stderr.on('data', (piece: Buffer) => gather(piece, true));
    child.stdin.on('error', () => {});
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(
        new CodedError(
          'hypervisor.unreachable',
          `${program} can not be run (${describeError(error)}).`,
          {},
          error,
        ),
      );
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (isCut) err += ` ended by ${signal}: no answer within ${timeoutMs / 1000} s, or too long a one`;
      resolve({ code: code ?? 1, out, err });
    });
    child.stdin.end(input ?? '');
  });
}
