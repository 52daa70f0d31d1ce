/**
 * Proof by killing and restarting a whole sensor, and the program that attaches, at random under traffic on a veth whose frames the kernel
 * counts and may filter: every frame arrives, is counted once, in its minute, with its address, no minute is partial or a gap, of a flood beside
 * them each packet was either delivered or dropped, by the minutes, and `check --remove` leaves nothing at the interface. Needs root.
 */

import { seededRandom } from '#common/random/index.ts';
import type { TelemetryMinute, TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { judgeRestarts, restartPlants } from '../collection/judge-restarts.ts';
import { type InterruptOptions, interruptSensor, victim } from '../collection/restarts.prove.ts';

export const name = 'kernel-kills';

const everyMs = 7000;
/** Without partial minutes there is nothing to notice in a rest or its gap. */
export const plants = ['a part comes twice', 'the downtime is taken for observed'] as const;

interface Options {
  /** Kills; then a fifth as many restarts. */
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: Options) {
  const random = seededRandom(seed);
  const kills = await interrupt({ n, signal: 'SIGKILL', everyMs, random, report });
  const restarts = await interrupt({ n: Math.ceil(n / 5), signal: 'SIGTERM', everyMs, random, report });
  const offences = [...kills.offences, ...restarts.offences];
  return {
    claim:
      `killed ${n} times under traffic on a veth, at random within ${everyMs / 1000} s, and restarted ${Math.ceil(n / 5)} times, its loader killed ` +
      `${kills.loadersKilled + restarts.loadersKilled} times, while the kernel counts and may filter: each of ${kills.frames + restarts.frames} frames arrived and ` +
      `is counted once, of ${kills.flooded + restarts.flooded} flooded ones ${kills.dropped + restarts.dropped} were dropped and the rest delivered, to the byte, ` +
      'and nothing is left at the interface',
    tried: n + Math.ceil(n / 5),
    failures: offences.length,
    plantedBugsCaught: `${kills.caught} of ${plants.length}`,
  };
}

/** Ends and starts a sensor again and again, and judges what arrived. */
export async function interrupt(options: Omit<InterruptOptions, 'inKernel'>) {
  const { report } = options;
  const done = await interruptSensor({ ...options, inKernel: true });
  const { frames, interruptions, flood } = done;
  // In the minute of its first start the kernel did not count from the beginning.
  const firstMinute = Math.floor(frames[0]!.sentAtMs / 60_000) * 60;
  const uploads = done.uploads
    .map((upload) => ({
      ...upload,
      minutes: upload.minutes.filter(({ minute }) => minute >= firstMinute).map(withoutFlood),
      gaps: upload.gaps.filter(({ toMinute }) => toMinute >= firstMinute),
    }))
    .filter(({ minutes, gaps }) => minutes.length + gaps.length > 0);
  const judge = (judged: typeof uploads) => judgeRestarts(judged, frames, interruptions, true);
  const { offences } = judge(uploads);
  offences.push(...done.left);
  const { delivered, dropped } = floodOf(done.uploads);
  for (const what of ['packets', 'bytes'] as const)
    if (delivered[what] + dropped[what] !== flood[what])
      offences.push(
        `of ${flood[what]} ${what} of the flood ${delivered[what]} were delivered and ${dropped[what]} dropped`,
      );
  if (flood.packets > 0 && dropped.packets === 0) offences.push('nothing was dropped');
  // One in two goes each way.
  const sent = frames.length - 1;
  const [sentIn, sentOut] = [Math.ceil(sent / 2) + flood.packets, Math.floor(sent / 2)];
  if (done.passed.in !== sentIn) offences.push(`${done.passed.in} of ${sentIn} frames came in`);
  if (done.passed.out !== sentOut) offences.push(`${done.passed.out} of ${sentOut} frames went out`);
  for (const offence of offences) report(offence);
  let caught = 0;
  for (const plant of plants) {
    const [first] = judge(restartPlants[plant]([...uploads])).offences;
    report(`planted ${plant}: ${first ?? 'NOT NOTICED'}`);
    if (first !== undefined) caught += 1;
  }
  const { loadersKilled } = done;
  const counted = { frames: sent, flooded: flood.packets, dropped: dropped.packets };
  return { offences, caught, planted: plants.length, ...counted, loadersKilled };
}

/** The minute as if the flood had not been. */
function withoutFlood(minute: TelemetryMinute): TelemetryMinute {
  const own = minute.hosts.find(({ address }) => address === victim);
  if (!own) return minute;
  const { totals, hosts } = minute;
  const less = { packets: totals.packets - own.packets, ipPackets: totals.ipPackets - own.packets };
  return {
    ...minute,
    totals: { ...totals, ...less, ipBytes: totals.ipBytes - own.rxBytes },
    hosts: hosts.filter((one) => one !== own),
  };
}

/** What the minutes say of the flood. */
function floodOf(uploads: readonly TelemetryUpload[]) {
  const [delivered, dropped] = [
    { packets: 0, bytes: 0 },
    { packets: 0, bytes: 0 },
  ];
  for (const { address, packets, rxBytes, dropped: part } of uploads.flatMap(({ minutes }) =>
    minutes.flatMap(({ hosts }) => hosts),
  )) {
    if (address !== victim) continue;
    delivered.packets += packets;
    delivered.bytes += rxBytes;
    dropped.packets += part?.rxPackets ?? 0;
    dropped.bytes += part?.rxBytes ?? 0;
  }
  return { delivered, dropped };
}
