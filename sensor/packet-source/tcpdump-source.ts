/**
 * Frames of one interface from a `tcpdump` process, the fallback for the ring: it costs several times more and can not
 * count the packets in merged frames.
 *
 * tcpdump prints the kernel's drop counter on SIGUSR1, which is sent every few seconds.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { CodedError } from '#common/errors/index.ts';
import { readMtu } from './mtu.ts';
import type { ObserveFrame, PacketSource } from './packet-source.ts';
import { createPcapStream } from './pcap-stream.ts';

const snapBytes = 4096;
const kernelBufferKiB = 32_768;
const statisticsEveryMs = 2000;
/** libpcap passes on a block that is not full after one second. */
const settleMs = 2500;
const startPatienceMs = 10_000;

/** Starts tcpdump and waits until it listens. Throws a `CodedError` with what is missing. */
export async function openTcpdumpSource(interfaceName: string, program = 'tcpdump'): Promise<PacketSource> {
  const child = startChild(interfaceName, program);
  const stream = createPcapStream(readMtu(interfaceName) + 22);
  const said: string[] = [];
  let failure: CodedError | null = null;
  let dropped = 0;
  let droppedTaken = 0;
  let wake: () => void = () => {};

  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    const counted = /(\d+) packets? dropped by kernel/.exec(text);
    if (counted) dropped = Number(counted[1]);
    said.push(text);
    if (said.length > 20) said.shift();
  });
  const fail = (error: CodedError) => {
    failure ??= error;
    wake();
  };
  child.on('error', (error) => fail(startError(program, error)));
  child.on('close', () => fail(endError(interfaceName, said.join(''))));
  child.stdout.on('readable', () => wake());

  function drain(observe: ObserveFrame): boolean {
    let hadSome = false;
    for (;;) {
      const piece = child.stdout.read() as Buffer | null;
      if (piece === null) return hadSome;
      hadSome = true;
      stream.push(piece, observe);
    }
  }

  function readable(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  // The stream's header comes as soon as tcpdump listens, with or without packets.
  const early: Parameters<ObserveFrame>[] = [];
  const startedAt = performance.now();
  while (stream.linkType === null) {
    drain((...frame) => early.push(frame));
    if (failure) throw failure;
    if (performance.now() - startedAt > startPatienceMs) {
      child.kill('SIGKILL');
      throw new CodedError('capture.failed', `tcpdump did not begin to listen on ${interfaceName}.`);
    }
    if (stream.linkType === null) await readable(100);
  }
  const statistics = setInterval(() => child.kill('SIGUSR1'), statisticsEveryMs);

  return {
    linkType: stream.linkType,
    method: 'tcpdump',
    countsSegments: false,
    fanoutGroup: null,
    settleMs,
    lingerMs: 1200,
    async poll(timeoutMs, observe) {
      for (const frame of early.splice(0)) observe(...frame);
      if (drain(observe)) return;
      if (failure) throw failure;
      await readable(timeoutMs);
      drain(observe);
    },
    takeDropped() {
      const since = dropped - droppedTaken;
      droppedTaken = dropped;
      return since;
    },
    close() {
      clearInterval(statistics);
      child.removeAllListeners('close');
      child.kill('SIGTERM');
    },
  };
}

function startChild(interfaceName: string, program: string): ChildProcessByStdio<null, Readable, Readable> {
  const options = ['-i', interfaceName, '-n', '-U', '-s', String(snapBytes), '-B', String(kernelBufferKiB)];
  // On the loopback interface a packet appears twice, outgoing and incoming.
  if (interfaceName === 'lo') options.push('-Q', 'in');
  // Keep root: the user `tcpdump` does not exist on every system, and this process writes no file.
  if (process.getuid?.() === 0) options.push('-Z', 'root');
  return spawn(program, [...options, '--time-stamp-precision=nano', '-w', '-'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function startError(program: string, error: Error): CodedError {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
    ? new CodedError(
        'capture.no_tcpdump',
        `There is no ${program} on this machine. Install the package tcpdump.`,
      )
    : new CodedError('capture.failed', `tcpdump did not start: ${error.message}`);
}

function endError(interfaceName: string, said: string): CodedError {
  const line =
    said
      .trim()
      .split('\n')
      .at(-1)
      ?.replace(/^tcpdump: /, '') ?? '';
  if (/permission|Operation not permitted/i.test(said)) {
    return new CodedError(
      'capture.not_permitted',
      `Capturing on ${interfaceName} needs the capability CAP_NET_RAW. Run the sensor as root or under systemd ` +
        'with AmbientCapabilities=CAP_NET_RAW.',
    );
  }
  if (/No such device|No such interface/i.test(said)) {
    return new CodedError(
      'capture.no_interface',
      `There is no network interface ${interfaceName}: name one that 'ip link' shows.`,
    );
  }
  if (/disappeared|network is down|not up/i.test(said)) {
    return new CodedError('capture.interface_gone', `Interface ${interfaceName} is gone: ${line}.`);
  }
  return new CodedError(
    'capture.failed',
    `tcpdump on ${interfaceName} ended: ${line || 'without a message'}.`,
  );
}
