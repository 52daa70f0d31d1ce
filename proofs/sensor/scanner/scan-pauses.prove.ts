/**
 * Proof of the packet ceiling over pauses: a real nmap scans a host that answers, over a veth, and is paused as the service
 * does it, by SIGSTOP and SIGCONT, for 0.2 to 12 seconds each time. nmap makes up for a pause at several times its rate.
 *
 * What is judged is a recording at the far end: no ten seconds with more than 80,000 packets (NET-8.3), no second with
 * more than `docs/port-scans.md` says, no packets during a pause, and no burst after one. A host that answers nothing gets no more
 * probes after a pause than may be outstanding (NET-2.7.7). It takes about six seconds for each pause, as root.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  collect,
  ended,
  insideAddresses,
  openToolLink,
  outsideAddresses,
  outsideInterface,
  record,
  requireTools,
  spawnTool,
} from '#sensor/testing/tool-link.ts';
import type { PausingScanInput, PausingScanLine } from './pausing-scan.ts';

export const name = 'scan-pauses';

/** NET-8.3: 8,000 a second on average over ten seconds. */
const windowMax = 80_000;
/** The bucket's rate and burst, and what nmap sends until it is stopped. */
const secondMax = 9500;
/** Of 100 ms after a pause: the burst, the rate, and what is sent until it is stopped. Without the count it is 5,800. */
const burstMax = 2500;
/** Where nothing answers: those that may be outstanding, of which none is over within 50 ms, twice. */
const silentBurstMax = 512;
/** The pacer looks every 4 ms; a loaded machine lets it wait. */
const settleMs = 100;
const plantedPauses = 4;
const silentPauses = 4;
const childPath = fileURLToPath(new URL('./pausing-scan.ts', import.meta.url));

export interface PauseOptions {
  n: number;
  seed: number;
  report(line: string): void;
}

/** Pauses scans `n` times and judges the packets, then shows that pauses without the ceiling are found. */
export async function prove({ n, seed, report }: PauseOptions) {
  requireTools({ ip: 'iproute2', nsenter: 'util-linux', tcpdump: 'tcpdump', nmap: 'nmap' });
  const most = await pauseScans(n, seed, {});
  const silent = await pauseScans(silentPauses, seed, { isSilent: true });
  for (const offence of [...most.offences, ...silent.offences]) report(offence);
  const planted = [
    await pauseScans(plantedPauses, seed, { isUncounted: true }),
    await pauseScans(silentPauses, seed, { isSilent: true, owesPackets: true }),
  ];
  report(`planted, pauses without the ceiling: ${planted[0]!.offences[0] ?? 'NOT NOTICED'}`);
  report(`planted, a rate that nmap makes up for: ${planted[1]!.offences[0] ?? 'NOT NOTICED'}`);
  return {
    claim: `scan packets at the far end of a veth, over ${most.pauses} pauses: at most ${most.ofWindow} in 10 s, ${most.ofSecond} in 1 s, ${most.afterPause} in 100 ms after a pause (${most.packets} packets), ${silent.afterPause} where nothing answers`,
    tried: most.pauses + silent.pauses,
    failures: most.offences.length + silent.offences.length,
    plantedBugsCaught: `${planted.filter(({ offences }) => offences.length > 0).length} of 2`,
  };
}

interface PauseResult {
  pauses: number;
  packets: number;
  ofWindow: number;
  ofSecond: number;
  afterPause: number;
  offences: string[];
}

interface PauseCase {
  /** Pauses without the ceiling. */
  isUncounted?: boolean;
  /** The host answers nothing. */
  isSilent?: boolean;
  /** nmap has a rate of its own to keep. */
  owesPackets?: boolean;
}

async function pauseScans(
  pauses: number,
  seed: number,
  { isUncounted = false, isSilent = false, owesPackets = false }: PauseCase,
): Promise<PauseResult> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-scan-pauses-'));
  const link = openToolLink();
  const input: PausingScanInput = {
    ...{ address: insideAddresses[4], sourceAddress: outsideAddresses[4] },
    ...{ interfaceName: outsideInterface, pauses, seed, isUncounted },
    ...(owesPackets ? { program: owing(folder) } : {}),
  };
  const file = join(folder, 'scan.pcap');
  try {
    if (isSilent) answerNothing(link.inside);
    let said = '';
    const dropped = await record(link, file, async () => {
      // Not by "ip netns exec": that hides the control groups.
      const enter = ['nsenter', `--net=/run/netns/${link.outside.at(-1)}`, process.execPath];
      const scan = spawnTool([
        ...enter,
        '--disable-warning=ExperimentalWarning',
        childPath,
        JSON.stringify(input),
      ]);
      const read = collect(scan);
      await ended(scan);
      said = read();
    });
    const lines = said
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as PausingScanLine);
    if (!lines.some(({ kind }) => kind === 'end')) throw new Error(`the scan failed: ${said}`);
    const result = judge(timesOf(file), lines, pauses, isSilent ? silent : answering);
    if (dropped > 0) result.offences.push(`the recording lacks ${dropped} packets`);
    return result;
  } finally {
    link.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Bounds {
  afterPauseMax: number;
  /** A scan that hardly sent anything shows nothing. */
  packetsMin: number;
}
const answering: Bounds = { afterPauseMax: burstMax, packetsMin: 40_000 };
const silent: Bounds = { afterPauseMax: silentBurstMax, packetsMin: 1000 };

/** From here on nothing leaves it. */
function answerNothing(inside: readonly string[]): void {
  const rules =
    'add table ip silent; add chain ip silent in { type filter hook input priority 0; policy drop; }';
  execFileSync(inside[0]!, [...inside.slice(1), 'nft', rules]);
}

/** nmap with `--min-rate`. */
function owing(folder: string): string {
  const path = join(folder, 'nmap');
  writeFileSync(path, '#!/bin/sh\nexec nmap "$@" --min-rate 500\n', { mode: 0o755 });
  return path;
}

function judge(
  times: readonly number[],
  lines: readonly PausingScanLine[],
  wanted: number,
  { afterPauseMax, packetsMin }: Bounds,
): PauseResult {
  const pauses = lines.filter((line) => line.kind === 'pause');
  const between = (fromMs: number, toMs: number) => firstFrom(times, toMs) - firstFrom(times, fromMs);
  const ofWindow = fullest(times, 10_000);
  const ofSecond = fullest(times, 1000);
  const afterPause = Math.max(...pauses.map(({ toMs }) => between(toMs, toMs + 100)));
  const offences: string[] = [];
  if (ofWindow > windowMax) offences.push(`${ofWindow} packets in ten seconds`);
  if (ofSecond > secondMax) offences.push(`${ofSecond} packets in one second`);
  if (afterPause > afterPauseMax) offences.push(`${afterPause} packets in 100 ms after a pause`);
  for (const { fromMs, toMs } of pauses) {
    const count = between(fromMs + settleMs, toMs);
    if (count > 0) offences.push(`${count} packets during a pause of ${toMs - fromMs} ms`);
  }
  if (pauses.length < wanted) offences.push(`only ${pauses.length} pauses`);
  if (times.length < packetsMin) offences.push(`only ${times.length} packets`);
  const counted = lines.reduce((sum, line) => sum + (line.kind === 'end' ? line.packets : 0), 0);
  // The recording may end with packets that it had not written.
  if (counted > 0 && Math.abs(counted - times.length) > times.length / 100 + 300)
    offences.push(`the sensor counted ${counted} of ${times.length} packets`);
  return { pauses: pauses.length, packets: times.length, ofWindow, ofSecond, afterPause, offences };
}

/** The most packets of any window of this length. */
function fullest(times: readonly number[], lengthMs: number): number {
  let [first, most] = [0, 0];
  for (let last = 0; last < times.length; last += 1) {
    while (times[first]! <= times[last]! - lengthMs) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

function firstFrom(times: readonly number[], ms: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** When each packet from the scanner to the host arrived, in milliseconds, in order. */
function timesOf(file: string): number[] {
  const bytes = readFileSync(file);
  const wanted = Buffer.from([outsideAddresses[4], insideAddresses[4]].join('.').split('.').map(Number));
  const times: number[] = [];
  for (let at = 24; at + 16 <= bytes.length; at += 16 + bytes.readUInt32LE(at + 8)) {
    const packet = at + 16;
    const isIp4 = bytes.readUInt16BE(packet + 12) === 0x0800;
    if (!isIp4 || !bytes.subarray(packet + 26, packet + 34).equals(wanted)) continue;
    times.push(bytes.readUInt32LE(at) * 1000 + bytes.readUInt32LE(at + 4) / 1000);
  }
  return times.sort((a, b) => a - b);
}
