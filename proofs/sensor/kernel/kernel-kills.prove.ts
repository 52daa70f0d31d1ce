/**
 * Proof by killing and restarting a whole sensor under traffic on a veth whose frames the kernel counts too: every frame is counted
 * once, in its minute, with its address, and no minute is partial or a gap. Needs root.
 */
import { judgeRestarts, restartPlants } from '../collection/judge-restarts.ts';
import { type InterruptOptions, interruptSensor } from '../collection/restarts.prove.ts';

export const name = 'kernel-kills';

const everyMs = 7000;
/** Without partial minutes there is nothing to notice in a rest or its gap. */
export const plants = ['a part comes twice', 'the downtime is taken for observed'] as const;

interface Options {
  /** Kills; then a fifth as many restarts. */
  n: number;
  report(line: string): void;
}

export async function prove({ n, report }: Options) {
  const kills = await interrupt({ n, signal: 'SIGKILL', everyMs, report });
  const restarts = await interrupt({ n: Math.ceil(n / 5), signal: 'SIGTERM', everyMs, report });
  const offences = [...kills.offences, ...restarts.offences];
  return {
    claim: `killed ${n} times under traffic on a veth, one every ${everyMs / 1000} s, and restarted ${Math.ceil(n / 5)} times, while the kernel counts: each of ${kills.frames + restarts.frames} frames is counted once`,
    tried: n + Math.ceil(n / 5),
    failures: offences.length,
    plantedBugsCaught: `${kills.caught} of ${plants.length}`,
  };
}

/** Ends and starts a sensor again and again, and judges what arrived. */
export async function interrupt(options: Omit<InterruptOptions, 'inKernel'>) {
  const { report } = options;
  const done = await interruptSensor({ ...options, inKernel: true });
  const { frames, interruptions } = done;
  // In the minute of its first start the kernel did not count from the beginning.
  const firstMinute = Math.floor(frames[0]!.sentAtMs / 60_000) * 60;
  const uploads = done.uploads
    .map((upload) => ({
      ...upload,
      minutes: upload.minutes.filter(({ minute }) => minute >= firstMinute),
      gaps: upload.gaps.filter(({ toMinute }) => toMinute >= firstMinute),
    }))
    .filter(({ minutes, gaps }) => minutes.length + gaps.length > 0);
  const judge = (judged: typeof uploads) => judgeRestarts(judged, frames, interruptions, true);
  const { offences } = judge(uploads);
  for (const offence of offences) report(offence);
  let caught = 0;
  for (const plant of plants) {
    const [first] = judge(restartPlants[plant]([...uploads])).offences;
    report(`planted ${plant}: ${first ?? 'NOT NOTICED'}`);
    if (first !== undefined) caught += 1;
  }
  return { offences, caught, planted: plants.length, frames: frames.length - 1 };
}
