/**
 * One nmap process: started inside its limits, read as it comes, and gone when the sensor is.
 *
 * A shell writes its own process id into the control groups and becomes nmap by way of setpriv, nice, ionice and prlimit:
 * one process all the time, so the first instruction of nmap runs within the limits. The kernel kills it when the
 * sensor's thread that started it ends (`--pdeathsig`), also after SIGKILL.
 *
 * The XML comes by a pipe of its own, because nmap's `Discovered open port` lines come only on the other output. A killed
 * nmap writes no port into its XML; the lines are what remains.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import koffi from 'koffi';
import { describeError } from '#common/errors/index.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import { createNmapXmlReader, type NmapReport, outputBytesMax } from './nmap-xml.ts';
import type { OpenPort } from './scan.ts';

const closeOnExec = 0o2000000;
const lineMax = 4096;
const saidMax = 2000;
/** A killed process that does not go, because it hangs in the kernel, is left behind after this time. */
const killPatienceMs = 10_000;
const restMs = 50;
const notOurParent = 125;
const notEnclosed = 126;
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Checks the parent again after the kernel was asked to watch it: it may have ended in between. */
const script = `
parent=$1; shift
[ "$PPID" = "$parent" ] || exit ${notOurParent}
while [ "$1" != -- ]; do echo $$ > "$1" || exit ${notEnclosed}; shift; done
shift
exec setpriv --pdeathsig KILL -- /bin/sh -c '[ "$PPID" = "$0" ] || exit ${notOurParent}; exec "$@"' "$parent" \
  nice -n 15 ionice -c 3 prlimit --core=0 "$@"`;

export interface NmapRunOptions {
  program: string;
  arguments: readonly string[];
  transport: ScanTransport;
  procsFiles: readonly string[];
  onOpen(port: OpenPort): void;
  onPercent(percent: number): void;
}

export interface NmapOutcome {
  report: NmapReport;
  /** More output came than is read; the process was ended. */
  isCut: boolean;
  /** A sentence about what went wrong; null when it ended by itself with success. */
  fault: string | null;
}

export interface NmapRun {
  /** Of the process; null when it could not be started. */
  readonly processId: number | null;
  /** Never rejects. */
  readonly outcome: Promise<NmapOutcome>;
  kill(): void;
}

/** Starts nmap. What fails is in the outcome. */
export function runNmap(options: NmapRunOptions): NmapRun {
  return new NmapProcess(options);
}

class NmapProcess implements NmapRun {
  readonly processId: number | null;
  readonly outcome: Promise<NmapOutcome>;
  readonly #options: NmapRunOptions;
  readonly #xml: ReturnType<typeof createNmapXmlReader>;
  #child: ChildProcess | null = null;
  #pipe: Socket | null = null;
  #bytes = 0;
  #isCut = false;
  #isKilled = false;
  #line = '';
  #said = '';
  #fault: string | null = null;
  #giveUp: () => void = () => {};

  constructor(options: NmapRunOptions) {
    this.#options = options;
    this.#xml = createNmapXmlReader(options.transport, options.onPercent);
    let ended: Promise<unknown> = Promise.resolve();
    try {
      ended = this.#start();
    } catch (error) {
      this.#fault = `nmap can not be started: ${describeError(error)}`;
    }
    this.processId = this.#child?.pid ?? null;
    const givenUp = new Promise<void>((resolve) => {
      this.#giveUp = resolve;
    });
    this.outcome = Promise.race([ended, givenUp]).then(() => this.#conclude());
  }

  kill(): void {
    if (this.#isKilled) return;
    this.#isKilled = true;
    this.#child?.kill('SIGKILL');
    setTimeout(() => this.#leave(), killPatienceMs).unref();
  }

  /** Reads no more, and waits no longer. */
  #leave(): void {
    for (const stream of [this.#child?.stdout, this.#child?.stderr, this.#pipe]) stream?.destroy();
    this.#giveUp();
  }

  /** Resolves when the process and all of its output have ended. */
  #start(): Promise<unknown> {
    const { program, procsFiles } = this.#options;
    const [readEnd, writeEnd] = openPipe();
    const words = [String(process.pid), ...procsFiles, '--', program, ...this.#options.arguments];
    let child: ChildProcess;
    try {
      child = spawn('/bin/sh', ['-c', script, 'sh', ...words], {
        stdio: ['ignore', 'pipe', 'pipe', writeEnd],
        env: { PATH: searchPath, LC_ALL: 'C' },
        // A session of its own: Ctrl-C on a terminal reaches the sensor only, which ends it in order.
        detached: true,
      });
    } catch (error) {
      closeSync(readEnd);
      throw error;
    } finally {
      closeSync(writeEnd);
    }
    this.#child = child;
    const xml = new Socket({ fd: readEnd, readable: true, writable: false });
    this.#pipe = xml;
    // What it wrote before it was killed is read; another process that holds its outputs open is not waited for.
    child.once('exit', () => this.#isKilled && setTimeout(() => this.#leave(), restMs));
    const decoder = new StringDecoder('utf8');
    xml.on('data', (piece) => this.#take(piece) && this.#xml.write(decoder.write(piece)));
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      if (this.#take(text)) this.#readLines(text);
    });
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      if (this.#take(text) && this.#said.length < saidMax) this.#said += text;
    });
    xml.on('error', () => xml.destroy());
    const xmlEnded = new Promise((resolve) => xml.once('close', resolve));
    const childEnded = new Promise<void>((resolve) => {
      child.once('error', (error) => {
        this.#fault = `nmap can not be started: ${describeError(error)}`;
        xml.destroy();
        resolve();
      });
      child.once('close', (code, signal) => {
        this.#fault ??= this.#exitFault(code, signal);
        resolve();
      });
    });
    return Promise.all([childEnded, xmlEnded]);
  }

  /** Counts output. False once there is more than is read: the process is ended. */
  #take({ length }: { length: number }): boolean {
    this.#bytes += length;
    if (this.#bytes <= outputBytesMax) return true;
    this.#isCut = true;
    this.kill();
    return false;
  }

  #readLines(text: string): void {
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop()!.slice(0, lineMax);
    for (const line of lines) {
      const match = /^Discovered open port (\d{1,5})\/(tcp|udp) on /.exec(line);
      const port = Number(match?.[1] ?? 0);
      const { transport } = this.#options;
      if (match?.[2] === transport && port >= 1 && port <= 65_535) this.#options.onOpen({ transport, port });
    }
  }

  #exitFault(code: number | null, signal: NodeJS.Signals | null): string | null {
    if (this.#isCut) return 'nmap wrote more than 8 MiB and was ended';
    if (this.#isKilled) return 'the scan was ended';
    if (code === 0) return null;
    if (code === notEnclosed) return 'the limits of the scan could not be set';
    if (code === notOurParent) return 'the sensor ended';
    if (code === 127) return 'nmap, setpriv, ionice or prlimit is missing: apt-get install nmap util-linux';
    const said = this.#said.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
    const why = signal === null ? `ended with ${code}` : `was ended by ${signal}`;
    return `nmap ${why}${said === '' ? '' : `: ${said}`}`;
  }

  #conclude(): NmapOutcome {
    const report = this.#xml.report();
    const fault = this.#fault ?? (this.#isKilled ? this.#exitFault(null, null) : null);
    return {
      report: { ...report, isFinished: report.isFinished && fault === null },
      isCut: this.#isCut,
      fault,
    };
  }
}

let pipe: ((ends: Buffer, flags: number) => number) | null = null;

/** A pipe: nmap opens its end again by name, which a socket pair, as Node.js makes it, does not allow. */
function openPipe(): [number, number] {
  pipe ??= koffi.load(null).func('int pipe2(_Out_ void *ends, int flags)') as NonNullable<typeof pipe>;
  const ends = Buffer.alloc(8);
  if (pipe(ends, closeOnExec) !== 0) throw new Error('no pipe could be opened');
  return [ends.readInt32LE(0), ends.readInt32LE(4)];
}
