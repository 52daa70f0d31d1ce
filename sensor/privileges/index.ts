/**
 * Reduces the capabilities of a sensor that root started to those that capturing needs.
 *
 * Capabilities belong to threads, and a runtime has several threads before its first line runs. So the process executes
 * `setpriv`, which executes the same command: the kernel then limits root to the reduced bounding set. Process id,
 * environment and open streams stay the same.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { makeFolders } from '#common/folders/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

export interface PrivilegeOptions {
  stateDirectory: string;
  /** Further files that it reads. */
  files: readonly string[];
  /** tcpdump is used instead of the ring: before it listens, it sets its groups and user, to the same values. */
  usesTcpdump: boolean;
  reporter: Reporter;
}

/** Packet sockets, rings, promiscuous mode, and ICMP probes. */
const captureNeeds = ['net_raw'];
const tcpdumpNeeds = ['setuid', 'setgid'];
/** Files of other users, such as a checkout or data directory of an ordinary user. */
const foreignFiles = ['dac_override'];

const numbers: Readonly<Record<string, number>> = { dac_override: 1, setgid: 6, setuid: 7, net_raw: 13 };

/**
 * Drops every unnecessary capability and restarts the command. Returns when there is nothing to drop, or when it is not
 * possible, which is logged.
 */
export function dropPrivileges(options: PrivilegeOptions): void {
  if (process.getuid?.() !== 0) return;
  const needed = [...captureNeeds, ...(options.usesTcpdump ? tcpdumpNeeds : [])];
  const has = readCapabilities();
  if (has === null || isReduced(has)) return;
  const keep = [needed, [...needed, ...foreignFiles]].find((names) => works(names, options));
  if (keep === undefined) {
    options.reporter.warn('runs with all capabilities of root, which could not be dropped', {
      do: 'install setpriv (util-linux), or run the sensor as a user of its own with CAP_NET_RAW',
    });
    return;
  }
  const setpriv = '/usr/bin/setpriv';
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  process.execve!(setpriv, ['setpriv', ...dropWords(keep), '--', ...again], definedEnvironment());
}

/**
 * The kept capabilities of a sensor that root started, such as `cap_net_raw`; null for other users, and when nothing
 * was dropped.
 */
export function keptCapabilities(): string | null {
  const has = process.getuid?.() === 0 ? readCapabilities() : null;
  return has !== null && isReduced(has) ? namesOf(has) : null;
}

const isReduced = (has: bigint) => (has & ~bitsOf(Object.keys(numbers))) === 0n;

function dropWords(keep: readonly string[]): string[] {
  const bounding = ['-all', ...keep.map((name) => `+${name}`)].join(',');
  return ['--no-new-privs', '--inh-caps', '-all', '--ambient-caps', '-all', '--bounding-set', bounding];
}

/** True when this process could start again and access its files with these capabilities alone. */
function works(keep: readonly string[], { stateDirectory, files }: PrivilegeOptions): boolean {
  makeFolders(stateDirectory, 0o700);
  const readable = [process.argv[1]!, process.execPath, ...files];
  const script =
    'state=$1; shift; [ -w "$state" ] && [ -x "$state" ] || exit 1; ' +
    'for file in "$state"/*; do [ ! -e "$file" ] || { [ -r "$file" ] && [ -w "$file" ]; } || exit 1; done; ' +
    'for file; do [ -r "$file" ] || exit 1; done';
  const words = [...dropWords(keep), '--', '/bin/sh', '-c', script, 'sh', stateDirectory, ...readable];
  return spawnSync('/usr/bin/setpriv', words, { stdio: 'ignore' }).status === 0;
}

/** Capabilities of this process; null when the kernel does not report them. */
function readCapabilities(): bigint | null {
  try {
    const text = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    return text === undefined ? null : BigInt(`0x${text}`);
  } catch {
    return null;
  }
}

function bitsOf(names: readonly string[]): bigint {
  return names.reduce((bits, name) => bits | (1n << BigInt(numbers[name]!)), 0n);
}

function namesOf(bits: bigint): string {
  const names = Object.keys(numbers).filter((name) => (bits & bitsOf([name])) !== 0n);
  return names.map((name) => `cap_${name}`).join(',');
}

function definedEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter((one): one is [string, string] => one[1] !== undefined),
  );
}
