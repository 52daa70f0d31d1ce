/**
 * Proof by killing a sensor that listens on a real interface: frames of known size are sent over a veth at a steady pace,
 * and the sensor at its other end is ended with SIGKILL at random moments, again and again.
 *
 * The sender's own ledger is the truth of each minute. The sensor's minutes are short: its clock, and the kernel's stamps
 * with it, run 40 times as fast, so a minute takes 1.5 s. The sender keeps away from the turns of minutes, where a
 * frame could be counted in either. Needs root.
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '#common/random/index.ts';
import { ethernetFrame, openFrameSender, udp4 } from '#sensor/testing/frame-sender.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { startToKill } from '../killed-process.ts';
import { startProofMonitor } from '../proof-monitor.ts';
import { judgeMinutes } from './judge-minutes.ts';
import type { KilledLiveSensorInput } from './killed-live-sensor.ts';
import { type PlantedFault, plantedFaults } from './planted-faults.ts';

export const name = 'sensor-live-kills';

const startMinute = 1_764_000_000;
const speed = 40;
const minuteMs = 60_000 / speed;
/** Most kills come within this time after the sensor runs, three minutes of its clock; some come while it starts. */
const killWithinMs = 3 * minuteMs;
const startKillShare = 0.1;
const plantedKills = 12;
/** Of fewer minutes, one that the sender stood still in is a large share. */
const shareJudgedFrom = 40;
const moreDrainsMax = 5;
const sendEveryMs = 20;
/** No frame is sent so close to the turn of a minute. */
const guardMs = 80;
const childPath = fileURLToPath(new URL('./killed-live-sensor.ts', import.meta.url));

export interface LiveKillOptions {
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: LiveKillOptions) {
  const { offences, whole, gaps } = await killListening({ n, seed, report }, null);
  for (const offence of offences) report(offence);
  let caught = 0;
  for (const fault of plantedFaults) {
    const found = await killListening({ n: Math.min(n, plantedKills), seed, report: () => {} }, fault);
    report(`planted ${fault}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  return {
    claim: `listening on a veth, every minute is what was sent or an exact gap, none is doubled (${whole} whole, ${gaps} gaps; a minute takes ${minuteMs / 1000} s)`,
    tried: n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
  };
}

export interface LiveKillResult {
  offences: string[];
  whole: number;
  gaps: number;
}

/** Kills a listening sensor `n` times, lets it finish, and judges what arrived. */
export async function killListening(
  { n, seed, report }: LiveKillOptions,
  fault: PlantedFault | null,
): Promise<LiveKillResult> {
  const random = seededRandom(seed);
  const folder = mkdtempSync(join(tmpdir(), 'svc-live-kill-'));
  const monitor = await startProofMonitor(random);
  const ends = makePair();
  const epochMs = Date.now();
  const sender = startSending(ends.there, epochMs);
  const committed = new Set<number>();
  const input: Omit<KilledLiveSensorInput, 'drainAfterMinutes'> = {
    interfaceName: ends.here,
    directory: join(folder, 'state'),
    url: monitor.url,
    epochMs,
    startMinute,
    speed,
    fault,
  };
  const startSensor = (drainAfterMinutes: number | null) => {
    const options: KilledLiveSensorInput = { ...input, drainAfterMinutes };
    return startToKill(childPath, options, (minute) => committed.add(Number(minute)));
  };
  try {
    for (let kill = 1; kill <= n; kill += 1) {
      const sensor = startSensor(null);
      if (random() >= startKillShare) await Promise.race([sensor.runs, sensor.gone]);
      await new Promise((resolve) => setTimeout(resolve, random() * killWithinMs));
      sensor.kill();
      await sensor.gone;
      if (kill % 25 === 0) report(`${kill} kills, ${committed.size} minutes committed`);
    }
    let code = await startSensor(3).gone;
    const findWhole = () => {
      const uploads = [...monitor.stored.values()];
      return uploads.flatMap((upload) => upload.minutes).filter((one) => one.observedMs === 60_000);
    };
    const isClear = (one: { minute: number }) => !sender.truth.unclear.has(one.minute);
    // On a machine that stands still now and then, until a minute could be compared.
    for (let more = 0; more < moreDrainsMax && code === 0 && !findWhole().some(isClear); more += 1)
      code = await startSensor(3).gone;
    sender.stop();
    const { truth } = sender;
    const uploads = [...monitor.stored.values()];
    const minutes = findWhole();
    // A frame that was sent while the sender stood still may lie on either side of a turn.
    const unclear = minutes.filter((one) => !isClear(one)).length;
    const offences = judgeMinutes(uploads, {
      startMinute,
      committed,
      bytesOfMinute: (minute) =>
        truth.unclear.has(minute)
          ? minutes.find((one) => one.minute === minute)!.totals.ipBytes
          : (truth.bytes.get(minute) ?? 0),
    });
    if (code !== 0) offences.push(`the sensor ended with ${code} after ${n} kills`);
    if (minutes.some((one) => one.totals.kernelDropped > 0)) offences.push('the kernel dropped frames');
    if (minutes.length === 0) offences.push('no minute arrived whole');
    else requireClearTruth(minutes.length, unclear);
    report(`${n} kills, ${minutes.length} whole minutes, ${unclear} of them with an unclear truth`);
    const gaps = new Set(
      uploads.flatMap((upload) =>
        upload.gaps.flatMap((gap) =>
          Array.from({ length: (gap.toMinute - gap.fromMinute) / 60 + 1 }, (_, i) => gap.fromMinute + i * 60),
        ),
      ),
    );
    return { offences, whole: minutes.length, gaps: gaps.size };
  } finally {
    sender.stop();
    monitor.stop();
    spawnSync('ip', ['link', 'del', ends.here]);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Throws where the sender stood still so often that nothing is proved, neither for nor against the sensor. */
function requireClearTruth(whole: number, unclear: number): void {
  if (unclear < whole && (whole < shareJudgedFrom || unclear * 2 <= whole)) return;
  throw new Error(
    `the truth is unclear in ${unclear} of ${whole} minutes: this machine stands still too often`,
  );
}

/** Two ends of a wire without other traffic. */
function makePair(): { here: string; there: string } {
  const [here, there] = [uniqueName(), uniqueName()];
  const ip = (...words: string[]) => {
    const { status, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr}`);
  };
  ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there);
  for (const end of [here, there]) {
    spawnSync('sh', ['-c', `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`]);
    ip('link', 'set', end, 'arp', 'off', 'up');
  }
  return { here, there };
}

interface SenderTruth {
  bytes: ReadonlyMap<number, number>;
  unclear: ReadonlySet<number>;
}

/** Sends frames of changing size at a steady pace and keeps the ledger. */
function startSending(interfaceName: string, epochMs: number): { truth: SenderTruth; stop(): void } {
  const sender = openFrameSender(interfaceName);
  const bytes = new Map<number, number>();
  const unclear = new Set<number>();
  const frames = Array.from({ length: 16 }, (_, i) => {
    const datagram = udp4('10.9.0.1', '198.51.100.2', 40 + i * 61);
    return { frame: ethernetFrame(0x0800, datagram), ipBytes: datagram.length };
  });
  const minuteAt = (wallMs: number) => startMinute + Math.floor((wallMs - epochMs) / minuteMs) * 60;
  let next = 0;
  const timer = setInterval(() => {
    const before = Date.now();
    const into = (before - epochMs) % minuteMs;
    if (into < guardMs || into > minuteMs - guardMs) return;
    const { frame, ipBytes } = frames[next % frames.length]!;
    next += 1;
    sender.send(frame);
    const minute = minuteAt(before);
    bytes.set(minute, (bytes.get(minute) ?? 0) + ipBytes);
    const after = minuteAt(Date.now());
    if (after !== minute) unclear.add(minute).add(after);
  }, sendEveryMs);
  let isOpen = true;
  return {
    truth: { bytes, unclear },
    stop() {
      clearInterval(timer);
      if (isOpen) sender.close();
      isOpen = false;
    },
  };
}
