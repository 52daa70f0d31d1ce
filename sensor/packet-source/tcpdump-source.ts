/**
 * Frames of one interface from a `tcpdump` process, the fallback for the ring: it costs several times more and can not
 * count the packets in merged frames.
 *
 * tcpdump prints the kernel's drop counter on SIGUSR1, which is sent every few seconds.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { CodedError } from '#common/errors/index.ts';
import { type ObserveFrame, type PacketSource, readMtu } from './packet-source.ts';

const snapBytes = 4096;
const kernelBufferKiB = 32_768;
const statisticsEveryMs = 2000;
/** libpcap passes on a block that is not full after one second. */
const settleMs = 2500;
const startPatienceMs = 10_000;

/** Starts tcpdump and waits until it listens. Throws a `CodedError` with what is missing. */
export async function openTcpdumpSource(interfaceName: string, program = 'tcpdump'): Promise<PacketSource> {
  const tcpdump = new Tcpdump(interfaceName, program);
  const early: Parameters<ObserveFrame>[] = [];
  const linkType = await tcpdump.begin((...frame) => early.push(frame));
  const statistics = setInterval(() => tcpdump.kill('SIGUSR1'), statisticsEveryMs);
  return {
    linkType,
    method: 'tcpdump',
    countsSegments: false,
    fanoutGroup: null,
    settleMs,
    lingerMs: 1200,
    async poll(timeoutMs, observe) {
      for (const frame of early.splice(0)) observe(...frame);
      if (tcpdump.drain(observe)) return;
      tcpdump.throwIfEnded();
      await tcpdump.readable(timeoutMs);
      tcpdump.drain(observe);
    },
    takeDropped: () => tcpdump.takeDropped(),
    close() {
      clearInterval(statistics);
      tcpdump.end();
    },
  };
}

/** A tcpdump process: its frames, its drop counter, and why it ended. */
class Tcpdump {
  readonly #interfaceName: string;
  readonly #child: ReturnType<typeof startChild>;
  readonly #stream: ReturnType<typeof createPcapStream>;
  /** The end of what it said on standard error. */
  readonly #said: string[] = [];
  #failure: CodedError | null = null;
  #dropped = 0;
  #droppedTaken = 0;
  #wake: () => void = () => {};

  constructor(interfaceName: string, program: string) {
    this.#interfaceName = interfaceName;
    this.#child = startChild(interfaceName, program);
    this.#stream = createPcapStream(readMtu(interfaceName) + 22);
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => this.#note(text));
    this.#child.on('error', (error) => this.#fail(startError(program, error)));
    this.#child.on('close', () => this.#fail(endError(interfaceName, this.#said.join(''))));
    this.#child.stdout.on('readable', () => this.#wake());
  }

  /** Waits for the stream's header, which comes as soon as it listens, with or without packets. Returns the link type. */
  async begin(observe: ObserveFrame): Promise<number> {
    const startedAt = performance.now();
    while (this.#stream.linkType === null) {
      this.drain(observe);
      this.throwIfEnded();
      if (performance.now() - startedAt > startPatienceMs) {
        this.kill('SIGKILL');
        throw new CodedError('capture.failed', `tcpdump did not begin to listen on ${this.#interfaceName}.`);
      }
      if (this.#stream.linkType === null) await this.readable(100);
    }
    return this.#stream.linkType;
  }

  /** Passes on the frames that have come. False when there were none. */
  drain(observe: ObserveFrame): boolean {
    let hadSome = false;
    for (;;) {
      const piece = this.#child.stdout.read() as Buffer | null;
      if (piece === null) return hadSome;
      hadSome = true;
      this.#stream.push(piece, observe);
    }
  }

  throwIfEnded(): void {
    if (this.#failure) throw this.#failure;
  }

  /** Resolves when something has come, at the end of the process, or after the time. */
  readable(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  takeDropped(): number {
    const since = this.#dropped - this.#droppedTaken;
    this.#droppedTaken = this.#dropped;
    return since;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  end(): void {
    this.#child.removeAllListeners('close');
    this.kill('SIGTERM');
  }

  #note(text: string): void {
    const counted = /(\d+) packets? dropped by kernel/.exec(text);
    if (counted) this.#dropped = Number(counted[1]);
    this.#said.push(text);
    if (this.#said.length > 20) this.#said.shift();
  }

  #fail(error: CodedError): void {
    this.#failure ??= error;
    this.#wake();
  }
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

// Parses a pcap stream in pieces from a pipe, in the byte order and time unit of its header.

const headBytes = 24;
const recordBytes = 16;
/** No frame of a live interface is longer; a longer record means that the stream is out of step. */
const frameBytesMax = 1024 * 1024;

/** Creates a parser. Frames longer than `frameBytesWhole` on the wire count as merged by offload. */
function createPcapStream(frameBytesWhole: number) {
  let rest: Buffer = Buffer.alloc(0);
  let linkType: number | null = null;
  let isLittle = true;
  let nanosecondsPerUnit = 1000;

  const word = (bytes: Buffer, at: number) => (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));

  function readHead(bytes: Buffer): void {
    const magics = [
      [0xa1b2c3d4, 1000],
      [0xa1b23c4d, 1],
    ] as const;
    for (const little of [true, false]) {
      isLittle = little;
      const known = magics.find(([magic]) => word(bytes, 0) === magic);
      if (!known) continue;
      nanosecondsPerUnit = known[1];
      linkType = word(bytes, 20) & 0xffff;
      return;
    }
    throw new Error('the output of tcpdump is not a capture');
  }

  return {
    /** Link type of the frames, null before the header. */
    get linkType(): number | null {
      return linkType;
    },
    /** Adds a piece and passes on the frames that it completes. Throws when the stream is not pcap. */
    push(piece: Buffer, observe: ObserveFrame) {
      const bytes = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
      let at = 0;
      if (linkType === null) {
        if (bytes.length < headBytes) {
          rest = bytes;
          return;
        }
        readHead(bytes);
        at = headBytes;
      }
      while (at + recordBytes <= bytes.length) {
        const captured = word(bytes, at + 8);
        if (captured > frameBytesMax) throw new Error('the output of tcpdump is damaged');
        if (at + recordBytes + captured > bytes.length) break;
        const wire = word(bytes, at + 12);
        const seconds = word(bytes, at);
        const nanoseconds = word(bytes, at + 4) * nanosecondsPerUnit;
        const segments = wire > frameBytesWhole ? 0 : 1;
        observe(bytes, at + recordBytes, captured, wire, seconds, nanoseconds, -1, segments);
        at += recordBytes + captured;
      }
      rest = bytes.subarray(at);
    },
  };
}
