/**
 * Two network namespaces with a veth pair, for traffic of real tools: `outside` sends, `inside` has the protected
 * addresses. The pair cuts segments itself unless asked otherwise, so that a capture has the packets of a wire. Needs root.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { uniqueName } from './link-names.ts';

/** Debian keeps such tools where ordinary users' PATH doesn't look. */
export const toolPath = `${process.env.PATH ?? ''}${delimiter}/usr/local/sbin${delimiter}/usr/sbin${delimiter}/sbin`;
const env = { ...process.env, PATH: toolPath };

export const insideMac = '02:00:00:00:00:fe';
export const outsideMac = '02:00:00:00:00:01';
/** The first of the outside; every other address of their networks is of the outside too. */
export const outsideAddresses = { 4: '198.18.0.1', 6: '2001:db8:e000::1' } as const;
/** The protected addresses; all of 192.0.2.0/24 answers. */
export const insideAddresses = { 4: '192.0.2.7', 6: '2001:db8:7::7' } as const;
export const insidePrefixes = ['192.0.2.0/24', '2001:db8:7::/48'] as const;
export const outsideInterface = 'va';
export const insideInterface = 'vb';

export type ToolLink = ReturnType<typeof openToolLink>;

/** Throws a sentence that names what is missing of these programs, given with their Debian packages. */
export function requireTools(packages: Readonly<Record<string, string>>): void {
  if (process.getuid?.() !== 0) throw new Error('Network namespaces take root: run it as root.');
  const missing = Object.keys(packages).filter((tool) => !isInstalled(tool));
  if (missing.length === 0) return;
  const names = [...new Set(missing.map((tool) => packages[tool]!))];
  throw new Error(`Missing: ${missing.join(', ')}. On Debian: apt-get install ${names.join(' ')}`);
}

/** True when a program is in one of the usual folders. */
export function isInstalled(tool: string): boolean {
  return toolPath.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, tool), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Makes the namespaces. `mergesSegments` leaves the pair's offload on: frames are then of up to 64 KiB. */
export function openToolLink({ mergesSegments = false } = {}) {
  const [inside, outside] = [uniqueName(), uniqueName()];
  const close = () => {
    for (const name of [inside, outside]) spawnSync('ip', ['netns', 'del', name], { env, stdio: 'ignore' });
  };
  try {
    for (const name of [inside, outside]) ip('netns', 'add', name);
    const { 4: out4, 6: out6 } = outsideAddresses;
    const { 4: in4, 6: in6 } = insideAddresses;
    const pair = ['type', 'veth', 'peer', 'name', insideInterface, 'address', insideMac, 'netns', inside];
    batch(outside, [['link', 'add', outsideInterface, 'address', outsideMac, ...pair]]);
    if (!mergesSegments)
      for (const [name, device] of [
        [outside, outsideInterface],
        [inside, insideInterface],
      ] as const)
        batch(name, [['link', 'set', device, 'gso_max_segs', '1', 'gso_max_size', '1500']]);
    batch(outside, [
      ...ready(outsideInterface, `${out4}/15`, `${out6}/36`),
      ['route', 'add', 'local', '198.18.0.0/16', 'dev', 'lo'],
      ['neigh', 'add', in4, 'lladdr', insideMac, 'dev', outsideInterface],
      ['route', 'add', '192.0.2.0/24', 'via', in4, 'dev', outsideInterface, 'onlink'],
      ['neigh', 'add', in6, 'lladdr', insideMac, 'dev', outsideInterface],
      ['route', 'add', '2001:db8:7::/48', 'via', in6, 'dev', outsideInterface, 'onlink'],
    ]);
    batch(inside, [
      ...ready(insideInterface, `${in4}/32`, `${in6}/128`),
      ['route', 'add', 'local', '192.0.2.0/24', 'dev', 'lo'],
      ['neigh', 'add', out4, 'lladdr', outsideMac, 'dev', insideInterface],
      ['neigh', 'add', out6, 'lladdr', outsideMac, 'dev', insideInterface],
      ['route', 'add', 'default', 'via', out4, 'dev', insideInterface, 'onlink'],
      ['-6', 'route', 'add', 'default', 'via', out6, 'dev', insideInterface, 'onlink'],
    ]);
  } catch (error) {
    close();
    throw error;
  }
  const words = (name: string) => ['ip', 'netns', 'exec', name];
  return {
    /** Words that run a program on a side. */
    outside: words(outside),
    inside: words(inside),
    close,
  };
}

export type ReplayLink = ReturnType<typeof openReplayLink>;

/** Makes a veth pair whose ends are in one namespace, without addresses, so that the kernel answers nothing. */
export function openReplayLink() {
  const name = uniqueName();
  const close = () => spawnSync('ip', ['netns', 'del', name], { env, stdio: 'ignore' });
  ip('netns', 'add', name);
  try {
    const [far, near] = [outsideInterface, insideInterface];
    for (const key of ['all', 'default'])
      ip('netns', 'exec', name, 'sysctl', '-qw', `net.ipv6.conf.${key}.disable_ipv6=1`);
    batch(name, [
      ['link', 'add', far, 'mtu', '65535', 'type', 'veth', 'peer', 'name', near, 'mtu', '65535'],
      ['link', 'set', far, 'up'],
      ['link', 'set', near, 'up'],
    ]);
    return {
      /** Words that run a program in its namespace. */
      words: [
        'ip',
        'netns',
        'exec',
        name,
      ] satisfies readonly string[] /** What is sent into the far end arrives at the near one. */,
      far,
      near,
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

function ready(device: string, net4: string, net6: string): string[][] {
  return [
    ['link', 'set', 'lo', 'up'],
    ['addr', 'add', net4, 'dev', device],
    ['addr', 'add', net6, 'dev', device, 'nodad'],
    ['link', 'set', device, 'up'],
  ];
}

function ip(...words: string[]): void {
  execFileSync('ip', words, { env, stdio: ['ignore', 'ignore', 'pipe'] });
}

function batch(name: string, lines: readonly (readonly string[])[]): void {
  for (const line of lines) ip('-n', name, ...line);
}

/** Runs a program until it ends or, after `seconds`, is ended. Resolves with what it said. */
export async function runFor(argv: readonly string[], seconds: number): Promise<string> {
  const child = spawnTool(argv);
  const said = collect(child);
  const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000);
  await ended(child);
  clearTimeout(timer);
  return said();
}

export function spawnTool(argv: readonly string[]): ChildProcess {
  const [tool, ...rest] = argv;
  return spawn(tool!, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

const saidMax = 100_000;

/** Collects the output of a program, up to a length. */
export function collect(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (piece: Buffer) => {
      if (text.length < saidMax) text += piece.toString();
    });
  return () => text;
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

/** Records the packets of the link while `during` runs. Returns the number that the kernel dropped. */
export async function record(link: ToolLink, file: string, during: () => Promise<unknown>): Promise<number> {
  const tcpdump = [
    'tcpdump',
    '-i',
    insideInterface,
    '-n',
    '-Z',
    'root',
    '-B',
    '65536',
    '-s',
    '160',
    '-w',
    file,
  ];
  const child = spawnTool([...link.inside, ...tcpdump, 'ip or ip6']);
  const said = collect(child);
  while (!said().includes('listening on')) {
    if (child.exitCode !== null) throw new Error(`tcpdump: ${said()}`);
    await wait(20);
  }
  try {
    await during();
    // What is in the kernel's buffer is read before tcpdump looks at the signal.
    await wait(300);
  } finally {
    child.kill('SIGINT');
    await ended(child);
  }
  return Number(/(\d+) packets? dropped by kernel/.exec(said())?.[1] ?? 0);
}
