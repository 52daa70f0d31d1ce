/** Captures packets of an interface with tcpdump, for tests that count packets on it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from '#service-kit/testing/until.ts';
import { toolPath } from '../world/run-tool.ts';
import { patientMs, type Scope } from './lab-tests.ts';
import { readCaptured, type SeenPacket } from './seen-packets.ts';

export interface LinkCapture {
  /** What was captured so far. */
  read(): SeenPacket[];
  /** Resolves as soon as what was captured `isEnough`, with all of it. */
  readUntil(what: string, isEnough: (seen: SeenPacket[]) => boolean): Promise<SeenPacket[]>;
  stop(): Promise<void>;
}

export interface LinkCaptureOptions {
  /** How to run a program where the interface is; empty for this namespace. */
  prefix: readonly string[];
  interfaceName: string;
  file: string;
  /** tcpdump's filter. */
  filter?: string;
  /** What arrives only. */
  isInbound: boolean;
}

/** Resolves when the capture listens. It ends with the test at the latest. */
export async function captureLink(t: Scope, options: LinkCaptureOptions): Promise<LinkCapture> {
  const { prefix, interfaceName, file, filter = 'ip or ip6', isInbound } = options;
  // Each packet is written as it comes: none waits in a buffer when a test reads the file. In this mode the kernel's
  // buffer has room for whole numbers of the longest packet, so that length is bounded.
  const tcpdump = ['tcpdump', '-i', interfaceName, '-Q', isInbound ? 'in' : 'inout', '-Z', 'root', '-n'];
  const [tool, ...rest] = [
    ...prefix,
    ...tcpdump,
    '--immediate-mode',
    '-U',
    '-s',
    '2048',
    '-B',
    '8192',
    '-w',
    file,
    filter,
  ];
  const child = spawn(tool!, rest, {
    env: { ...process.env, PATH: toolPath },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  t.after(stop);
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await until(`tcpdump listens on ${interfaceName}`, patientMs, () => said.includes('listening on'));
  const read = () => readCaptured(file);
  return {
    read,
    readUntil: (what, isEnough) =>
      until(`${what} on ${interfaceName}`, patientMs, () => {
        const seen = read();
        return isEnough(seen) ? seen : null;
      }),
    stop,
  };
}
