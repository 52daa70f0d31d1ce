/**
 * Compares the packet path with common programs for the same tasks, on the same generated captures, in one run.
 *
 * Processor time per packet, medians of five rounds in which all programs take turns. There are two figures: from the
 * first packet on, without only the start on ten packets; and the steady state. V8 compiles our code for some three
 * million packets, and a sensor runs for months, so the steady state is the median of the fourth to eighth reading in
 * one process. For the others it is the whole file without its first 200,000 packets. The targets are about the steady
 * state. Missing programs are installed; a program that can not be installed is reported.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pcapFile } from '#sensor/testing/capture-files.ts';
import { writeFlood } from '#sensor/testing/flood-capture.ts';
import { createMixedCapture, type MixedCapture } from '#sensor/testing/mixed-capture.ts';
import type { LiveReading } from '#sensor/testing/read-as-live.ts';
import { installSystemPackages } from '#tools/system-packages.ts';

export const name = 'capture';

const rounds = 5;
/** Readings of our own program for warm-up, and measured ones, including all threads of the process. */
const warmUpReadings = 3;
const measuredReadings = 5;
const mixedFlows = 60_000;
const floodFlows = 1_000_000;
/** Connections of the capture for whole commands: four million packets. */
const longFlows = 152_000;
const commandRounds = 3;
const namedBeforeFlood = 2000;
/** Tshark is about fifty times slower, so it reads the beginning only. */
const tsharkPackets = 40_000;
/** Packets that are subtracted for the steady state of the other programs. */
const headPackets = 200_000;

const peerPackages = [
  { name: 'tcpdump', file: '/usr/bin/tcpdump', use: 'the peer tcpdump -w' },
  { name: 'softflowd', file: '/usr/sbin/softflowd', use: 'the peer softflowd' },
  { name: 'libndpi-bin', file: '/usr/bin/ndpiReader', use: 'the peer ndpiReader' },
  { name: 'tshark', file: '/usr/bin/tshark', use: 'the peer tshark' },
  { name: 'nfdump', file: '/usr/bin/nfpcapd', use: 'the peer nfpcapd' },
];

interface Program {
  name: string;
  /** The command that only reads `file`. */
  command(file: string): string[];
  /** Milliseconds of each of several readings in one process, for programs that become faster. */
  readOften?(file: string): number[];
  /** Reads the short capture. */
  isSlow?: boolean;
}

interface Captures {
  mixed: string;
  flood: string;
  short: string;
  tiny: string;
  mixedHead: string;
  floodHead: string;
  mixedPackets: number;
  floodPackets: number;
}

const reader = fileURLToPath(new URL('../sensor/testing/read-as-live.ts', import.meta.url));
const ours: Program = {
  name: 'svc',
  command: (file) => [process.execPath, reader, file],
  readOften(file) {
    const often = Array<string>(warmUpReadings + measuredReadings).fill(file);
    return (JSON.parse(runProgram([process.execPath, reader, ...often])) as LiveReading[]).map(
      (reading) => reading.cpuMs,
    );
  },
};

/** Runs the benchmark and reports a line for each program and each target. */
export async function run(report: (line: string) => void): Promise<void> {
  await installSystemPackages(peerPackages);
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  try {
    const captures = writeCaptures(folder);
    const mixed = compare(mixedPrograms(), captures, 'mixed', report);
    report(
      `mixed traffic: ${captures.mixedPackets.toLocaleString('en-US')} packets in full, ${mixedFlows.toLocaleString('en-US')} flows`,
    );
    reportAll(mixed, report);
    reportTarget(mixed, 'ndpiReader -e 0', 4, report);
    reportTarget(mixed, 'softflowd', 1, report);
    reportTarget(mixed, 'tcpdump -w', 0.5, report);
    const flood = compare(floodPrograms(folder), captures, 'flood', report);
    report(`flood of one-packet flows: ${captures.floodPackets.toLocaleString('en-US')} packets`);
    reportAll(flood, report);
    reportTarget(flood, 'nfpcapd', 3, report);
    reportFlood(captures.flood, report);
    reportCommands(folder, report);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function mixedPrograms(): Program[] {
  return [
    ours,
    { name: 'tcpdump -w', command: (file) => ['tcpdump', '-r', file, '-w', '/dev/null'] },
    { name: 'softflowd', command: (file) => ['softflowd', '-d', '-r', file, '-n', '127.0.0.1:9'] },
    { name: 'ndpiReader -e 0', command: (file) => ['ndpiReader', '-q', '-e', '0', '-i', file] },
    {
      name: 'tshark, server names',
      command: (file) => [
        'tshark',
        '-n',
        '-r',
        file,
        '-T',
        'fields',
        '-e',
        'tls.handshake.extensions_server_name',
      ],
      isSlow: true,
    },
  ];
}

function floodPrograms(folder: string): Program[] {
  return [ours, { name: 'nfpcapd', command: (file) => ['nfpcapd', '-r', file, '-l', folder] }];
}

/** Nanoseconds of processor time a packet. */
interface Cost {
  fromStart: number;
  staying: number;
}

/** The cost of each program; missing programs are reported and left out. */
function compare(
  programs: readonly Program[],
  captures: Captures,
  kind: 'mixed' | 'flood',
  report: (line: string) => void,
): Map<string, Cost> {
  const present = programs.filter((program) => {
    const isThere = secondsOf(program.command(captures.tiny)) !== null;
    if (!isThere) report(`${program.name} can't be run here and is left out`);
    return isThere;
  });
  const samples = new Map<string, Cost[]>(present.map((program) => [program.name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const program of present) samples.get(program.name)!.push(measure(program, captures, kind));
  }
  const middle = (costs: readonly Cost[]) => ({
    fromStart: median(costs.map((cost) => cost.fromStart)),
    staying: median(costs.map((cost) => cost.staying)),
  });
  return new Map([...samples].map(([program, costs]) => [program, middle(costs)]));
}

function measure(program: Program, captures: Captures, kind: 'mixed' | 'flood'): Cost {
  const seconds = (file: string) => secondsOf(program.command(file)) ?? Number.NaN;
  const start = seconds(captures.tiny);
  if (program.isSlow) {
    const cost = ((seconds(captures.short) - start) * 1e9) / tsharkPackets;
    return { fromStart: cost, staying: cost };
  }
  const packets = kind === 'mixed' ? captures.mixedPackets : captures.floodPackets;
  const whole = seconds(captures[kind]);
  const fromStart = ((whole - start) * 1e9) / packets;
  if (program.readOften) {
    const readings = program.readOften(captures[kind]).slice(warmUpReadings);
    return { fromStart, staying: (median(readings) * 1e6) / packets };
  }
  const head = seconds(kind === 'mixed' ? captures.mixedHead : captures.floodHead);
  return { fromStart, staying: ((whole - head) * 1e9) / (packets - headPackets) };
}

/** User and system seconds of a command; null when it can not be run. */
function secondsOf(command: readonly string[]): number | null {
  const script = 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>/dev/null || exit 1';
  const result = spawnSync('bash', ['-c', script, 'bash', ...command], { encoding: 'utf8' });
  if (result.status !== 0) return null;
  const [user, system] = result.stderr.trim().split(' ').map(Number);
  return user! + system!;
}

function reportAll(costs: ReadonlyMap<string, Cost>, report: (line: string) => void): void {
  for (const [program, { fromStart, staying }] of costs)
    report(
      `  ${program}: ${staying.toFixed(0)} ns a packet, ${fromStart.toFixed(0)} from the first packet on`,
    );
}

function reportTarget(
  costs: ReadonlyMap<string, Cost>,
  peer: string,
  factor: number,
  report: (line: string) => void,
): void {
  const own = costs.get(ours.name)!;
  const other = costs.get(peer);
  if (!other) return;
  const speed = other.staying / own.staying;
  const fromStart = other.fromStart / own.fromStart;
  report(
    `  ${speed >= factor ? 'reached' : 'MISSED'}: ${speed.toFixed(2)} of the speed of ${peer} (${fromStart.toFixed(2)} from the first packet on), wanted ${factor}`,
  );
}

/** Whole commands, from start to end, on a capture of realistic length. */
function reportCommands(folder: string, report: (line: string) => void): void {
  const file = join(folder, 'long.pcap');
  const mixed = createMixedCapture(longFlows);
  const packets = mixed.frames;
  writeMixed(file, mixed, packets);
  const svc = fileURLToPath(new URL('../svc', import.meta.url));
  const own: Program[] = [
    { name: 'svc sensor read', command: (path) => [svc, 'sensor', 'read', path] },
    { name: 'svc sensor read --json', command: (path) => [svc, 'sensor', 'read', '--json', path] },
  ];
  const peers = mixedPrograms().filter((program) => program !== ours && !program.isSlow);
  const samples = new Map([...own, ...peers].map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < commandRounds; round += 1) {
    for (const { name, command } of [...own, ...peers]) {
      // Otherwise the first program would also pay for reading the file from the disk.
      readThrough(file);
      const seconds = secondsOf(command(file));
      if (seconds !== null) samples.get(name)!.push(seconds);
    }
  }
  report(`whole commands, from start to end: ${packets.toLocaleString('en-US')} packets of mixed traffic`);
  for (const [name, seconds] of samples) {
    if (seconds.length > 0) report(`  ${name}: ${median(seconds).toFixed(2)} s of processor time`);
    else report(`  ${name} can't be run here and is left out`);
  }
  for (const { name, command } of own) {
    for (const [peer, factor] of [
      ['ndpiReader -e 0', 4],
      ['softflowd', 1],
      ['tcpdump -w', 0.4],
    ] as const) {
      const others = samples.get(peer)!;
      if (others.length === 0) continue;
      const speed = median(others) / median(samples.get(name)!);
      report(
        `  ${speed >= factor ? 'reached' : 'MISSED'}: ${name} has ${speed.toFixed(2)} of the speed of ${peer}, wanted ${factor}`,
      );
    }
    const mib = residentMiB(command(file));
    report(`  ${mib < 256 ? 'reached' : 'MISSED'}: ${name} has ${mib} MiB resident, wanted below 256`);
  }
}

/** Reads a file into the page cache. */
function readThrough(file: string): void {
  const piece = new Uint8Array(1 << 20);
  const descriptor = openSync(file, 'r');
  while (readSync(descriptor, piece) > 0);
  closeSync(descriptor);
}

/** Peak resident memory of a command. */
function residentMiB(command: readonly string[]): number {
  const rss = spawnSync(process.execPath, ['--input-type=module', '-e', rssScript, ...command], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  return Number(rss.stdout.trim());
}

/** Under the flood, memory must stay limited and known names must stay. */
function reportFlood(file: string, report: (line: string) => void): void {
  const [live] = JSON.parse(runProgram([process.execPath, reader, file])) as [LiveReading];
  report(
    `  live engine on the flood: ${live.rssMiB} MiB resident, ${live.namedAtEnd} of ${namedBeforeFlood} connections still named`,
  );
  const svc = fileURLToPath(new URL('../svc.ts', import.meta.url));
  const script = '"$@" --json | grep -c "before-[0-9]*\\.site-"';
  const named = spawnSync('bash', ['-c', script, 'bash', process.execPath, svc, 'sensor', 'read', file], {
    encoding: 'utf8',
  });
  const mib = residentMiB([process.execPath, svc, 'sensor', 'read', file, '--json']);
  const isKept = Number(named.stdout.trim()) >= namedBeforeFlood;
  report(
    `  ${mib < 256 && isKept ? 'reached' : 'MISSED'}: sensor read on the flood: ${mib} MiB resident, wanted below 256; ${named.stdout.trim()} of ${namedBeforeFlood} names listed`,
  );
}

/** Starts a command and prints its peak resident memory, MiB. */
const rssScript = `
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
const child = spawn(process.argv[1], process.argv.slice(2), { stdio: ['ignore', 'pipe', 'ignore'] });
let most = 0;
const look = () => { try { most = Math.max(most, Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/' + child.pid + '/status', 'utf8'))?.[1] ?? 0)); } catch {} };
child.stdout.on('data', look);
const timer = setInterval(look, 20);
child.on('exit', () => { clearInterval(timer); console.log(Math.round(most / 1024)); });
`;

function runProgram(command: readonly string[]): string {
  const result = spawnSync(command[0]!, command.slice(1), { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`${command.join(' ')} failed: ${result.stderr}`);
  return result.stdout;
}

function writeCaptures(folder: string): Captures {
  const captures = {
    mixed: join(folder, 'mixed.pcap'),
    flood: join(folder, 'flood.pcap'),
    short: join(folder, 'short.pcap'),
    tiny: join(folder, 'tiny.pcap'),
    mixedHead: join(folder, 'mixed-head.pcap'),
    floodHead: join(folder, 'flood-head.pcap'),
    floodPackets: floodFlows + namedBeforeFlood * 5,
  };
  const mixed = createMixedCapture(mixedFlows);
  writeMixed(captures.mixed, mixed, mixed.frames);
  writeMixed(captures.short, mixed, tsharkPackets);
  writeMixed(captures.tiny, mixed, 10);
  writeMixed(captures.mixedHead, mixed, headPackets);
  writeFlood(captures.floodHead, headPackets - namedBeforeFlood * 5, namedBeforeFlood);
  writeFlood(captures.flood, floodFlows, namedBeforeFlood);
  return { ...captures, mixedPackets: mixed.frames };
}

/** Writes complete frames; bytes without contents are zeros. */
function writeMixed(path: string, mixed: MixedCapture, frames: number): void {
  const file = openSync(path, 'w');
  writeSync(file, pcapFile([]));
  const piece = new Uint8Array(1 << 20);
  const view = new DataView(piece.buffer);
  let used = 0;
  for (let frame = 0; frame < frames; frame += 1) {
    const at = mixed.offsets[frame]!;
    const length = mixed.wire[frame]!;
    if (used + 16 + length > piece.length) {
      writeSync(file, piece, 0, used);
      piece.fill(0);
      used = 0;
    }
    const ms = mixed.times[frame]!;
    view.setUint32(used, 1_700_000_040 + Math.floor(ms / 1000), true);
    view.setUint32(used + 4, Math.floor((ms % 1000) * 1000), true);
    view.setUint32(used + 8, length, true);
    view.setUint32(used + 12, length, true);
    piece.set(mixed.bytes.subarray(at, at + mixed.captured[frame]!), used + 16);
    used += 16 + length;
  }
  writeSync(file, piece, 0, used);
  closeSync(file);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}
