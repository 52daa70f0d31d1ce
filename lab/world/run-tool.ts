/** Runs the tools that make a world (`ip`, `nft`, `bridge`, `openssl`) and turns their failures into one clear sentence. */
import { spawn } from 'node:child_process';
import { CodedError } from '#common/errors/index.ts';

/** Debian keeps `ip`, `nft` and `bridge` where ordinary users' PATH doesn't look. */
export const toolPath = `${process.env.PATH ?? ''}:/usr/local/sbin:/usr/sbin:/sbin`;

const packages: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  bridge: 'iproute2',
  nft: 'nftables',
  openssl: 'openssl',
  tcpdump: 'tcpdump',
};

/**
 * Runs `argv` to its end and resolves with what it wrote to standard output. Throws `lab.tool_missing` when there is
 * no such program and `lab.tool_failed` with its own words when it exits with anything but 0.
 */
export function runTool(argv: readonly string[], input = ''): Promise<string> {
  const [tool, ...rest] = argv as [string, ...string[]];
  return new Promise((resolve, reject) => {
    const child = spawn(tool, rest, { env: { ...process.env, PATH: toolPath }, stdio: 'pipe' });
    const output: Buffer[] = [];
    const complaints: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => complaints.push(chunk));
    child.on('error', (error: NodeJS.ErrnoException) => reject(describeSpawnFailure(tool, error)));
    child.on('close', (code, signal) => {
      if (code === 0) return resolve(Buffer.concat(output).toString());
      const words = Buffer.concat(complaints).toString().trim() || `ended with ${signal ?? code}`;
      reject(new CodedError('lab.tool_failed', `${argv.join(' ')}: ${words}`));
    });
    // A tool that ends before it has read everything closes the pipe; its exit code tells the story.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

/** Runs lines of `ip` commands inside a namespace in one process, or in the host's own where `namespace` is null. */
export async function runIp(namespace: string | null, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return;
  await runTool(['ip', ...(namespace ? ['-n', namespace] : []), '-batch', '-'], `${lines.join('\n')}\n`);
}

/** Writes kernel settings of a namespace, given as paths below /proc/sys/net and values. */
export async function writeNetworkSettings(
  namespace: string,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const lines = Object.entries(settings).map(([path, value]) => `echo ${value} > /proc/sys/net/${path}`);
  await runTool(['ip', 'netns', 'exec', namespace, 'sh', '-e'], `${lines.join('\n')}\n`);
}

function describeSpawnFailure(tool: string, error: NodeJS.ErrnoException): CodedError {
  if (error.code !== 'ENOENT') return new CodedError('lab.tool_failed', `${tool}: ${error.message}`);
  const name = packages[tool] ?? tool;
  return new CodedError('lab.tool_missing', `"${tool}" is missing. On Debian: apt-get install ${name}`);
}
