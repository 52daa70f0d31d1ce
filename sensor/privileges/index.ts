/**
 * Makes a command that root started go on as a user without root's rights, with the capabilities that it needs.
 *
 * User ids and capabilities belong to threads, and a runtime has several threads before its first line runs. So the process
 * executes `setpriv`, which executes the same command as that user: for good, and for its threads and children too.
 * Process id, environment and open streams stay the same.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { CodedError, describeError } from '#common/errors/index.ts';
import { giveTree, makeFolderOf, makeFolders } from '#common/folders/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { asUser, findOrMakeUser, type SystemUser } from '#common/system-users/index.ts';

/** Packet sockets, rings, promiscuous mode, ICMP probes and nmap need this. The packaged service has the same. */
export const captureCapabilities: readonly string[] = ['net_raw'];
/** Loading and attaching the kernel's programs need these, and hold them no longer. */
export const kernelCapabilities: readonly string[] = ['bpf', 'net_admin'];
/** Added where the program or its files are below folders that only root can enter, such as /root. */
const reachesAll = 'dac_read_search';

const serviceUser = 'svc-sensor';
/** Compiled code of the service's user; the package makes it too. */
const compileCache = '/var/cache/svc-sensor';
/** What a sensor keeps in its state directory. */
const stateNames =
  /^((credential|plan|incidents|spool-state|unfinished-minutes)\.json(\.new)?|(damaged-)?spool-\d+\.sqlite.*|scans\.sqlite.*|evidence|sensor\.sock)$/;
const capabilityNames = new Map([
  [2, reachesAll],
  [12, 'net_admin'],
  [13, 'net_raw'],
  [39, 'bpf'],
]);

export interface PrivilegeOptions {
  /** Its owner is who the command goes on as, unless that is root. Null: the command has none. */
  stateDirectory: string | null;
  /** The command makes the state directory, only looks into it, or does without. */
  state: 'makes' | 'reads' | 'ignores';
  capabilities: readonly string[];
  /** Further files that the command reads; those that are not there are left to it. */
  files: readonly string[];
  reporter: Reporter;
  /** What else root has to give to the user. */
  giveMore?(user: SystemUser): void;
}

/** Starts the command again without the rights of root. Returns where it has none, and after a warning where it must keep them. */
export function leaveRoot(options: PrivilegeOptions): void {
  if (process.getuid?.() !== 0) return;
  try {
    const user = chooseUser(options.stateDirectory);
    if (options.state === 'makes') giveState(options.stateDirectory!, user);
    const { capabilities } = options;
    const kept = [capabilities, [...capabilities, reachesAll]].find((names) => works(user, names, options));
    if (kept === undefined)
      throw new CodedError('privileges.kept', `the user ${user.uid} can't use the state directory or a file`);
    options.giveMore?.(user);
    const [setpriv, ...words] = asUser(user, kept);
    const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
    process.execve!(setpriv!, ['setpriv', ...words, '--', ...again], environmentOf(user));
  } catch (error) {
    options.reporter.warn('runs with all rights of root, which could not be given up', {
      why: describeError(error),
      do: 'let the user svc-sensor have its files, or run the sensor as a user of its own with CAP_NET_RAW',
    });
  }
}

/** The capabilities of this process, such as `cap_net_raw`, or `none`; null for root, and where the kernel does not say. */
export function heldCapabilities(): string | null {
  if (process.getuid?.() === 0) return null;
  const text = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  if (text === undefined) return null;
  const bits = BigInt(`0x${text}`);
  const numbers = Array.from({ length: 64 }, (_, i) => i).filter((i) => (bits & (1n << BigInt(i))) !== 0n);
  return numbers.map((i) => `cap_${capabilityNames.get(i) ?? i}`).join(',') || 'none';
}

function chooseUser(stateDirectory: string | null): SystemUser {
  const state = stateDirectory === null ? undefined : statSync(stateDirectory, { throwIfNoEntry: false });
  return state && state.uid !== 0
    ? { uid: state.uid, gid: state.gid }
    : findOrMakeUser(serviceUser, 'sensor of svc');
}

/** Gives the user the state directory that root has made, now or as a sensor of an earlier version; never another folder. */
function giveState(directory: string, user: SystemUser): void {
  makeFolders(directory, 0o700);
  const place = realpathSync(directory);
  const { uid, mode } = lstatSync(place);
  if (uid === user.uid) return;
  if ((mode & 0o022) !== 0)
    throw new CodedError('privileges.state', `${place} is root's, and others may write to it`);
  const foreign = readdirSync(place).find((name) => !stateNames.test(name));
  if (foreign !== undefined)
    throw new CodedError(
      'privileges.state',
      `${place} is root's and has ${foreign}, which is not the sensor's`,
    );
  giveTree(place, user);
}

/** True when this command could start again as this user with these capabilities, and use its files. */
function works(user: SystemUser, capabilities: readonly string[], options: PrivilegeOptions): boolean {
  const { stateDirectory, state, files } = options;
  const used = state !== 'ignores' && stateDirectory !== null && existsSync(stateDirectory);
  const readable = [process.argv[1]!, process.execPath, ...files].filter((file) => existsSync(file));
  const script =
    'state=$1; shift; [ -z "$state" ] || { [ -w "$state" ] && [ -x "$state" ]; } || exit 1; ' +
    'for file in "$state"/*; do [ -z "$state" ] || [ ! -e "$file" ] || { [ -r "$file" ] && [ -w "$file" ]; } || exit 1; done; ' +
    'for file; do [ -r "$file" ] || exit 1; done';
  const command = ['/bin/sh', '-c', script, 'sh', used ? stateDirectory : '', ...readable];
  const [setpriv, ...words] = [...asUser(user, capabilities), '--', ...command];
  return spawnSync(setpriv!, words, { stdio: 'ignore' }).status === 0;
}

/** This process's; compiled code has another place, because one user must not run what another compiled. */
function environmentOf(user: SystemUser): Record<string, string> {
  const { NODE_COMPILE_CACHE: cache, ...rest } = process.env;
  const own = cache !== undefined && ownsCache(user) ? { NODE_COMPILE_CACHE: compileCache } : {};
  const defined = Object.entries(rest).filter((one): one is [string, string] => one[1] !== undefined);
  return { ...Object.fromEntries(defined), ...own };
}

function ownsCache(user: SystemUser): boolean {
  try {
    return makeFolderOf(compileCache, user);
  } catch {
    // Each start compiles anew.
    return false;
  }
}
