/**
 * Proof by killing and restarting a whole sensor under traffic on a veth whose frames the kernel counts too: every frame is counted
 * once, in its minute, with its address. After kills no minute is partial or a gap; a restart in order leaves a minute in two parts,
 * whose gaps say so. Needs root.
 */
import { judgeRestarts, restartPlants } from '../collection/judge-restarts.ts';
import { interruptSensor } from '../collection/restarts.prove.ts';

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
  const kills = await interrupt(n, 'SIGKILL', report);
  const restarts = await interrupt(Math.ceil(n / 5), 'SIGTERM', report);
  const offences = [...kills.offences, ...restarts.offences];
  return {
    claim: `killed ${n} times under traffic on a veth, one every ${everyMs / 1000} s, and restarted ${Math.ceil(n / 5)} times, while the kernel counts: each of ${kills.frames + restarts.frames} frames is counted once`,
    tried: n + Math.ceil(n / 5),
    failures: offences.length,
    plantedBugsCaught: `${kills.caught} of ${plants.length}`,
  };
}

/** Ends and starts a sensor `n` times, and judges what arrived. */
export async function interrupt(n: number, signal: 'SIGKILL' | 'SIGTERM', report: (line: string) => void) {
  const done = await interruptSensor({ n, signal, everyMs, report, inKernel: true });
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
  const isOffence = (one: string) => signal === 'SIGKILL' || !one.endsWith('is whole and a gap');
  const judge = (judged: typeof uploads) =>
    judgeRestarts(judged, frames, interruptions).offences.filter(isOffence);
  const offences = judge(uploads);
  for (const offence of offences) report(offence);
  let caught = 0;
  for (const plant of plants) {
    const [first] = judge(restartPlants[plant]([...uploads]));
    report(`planted ${plant}: ${first ?? 'NOT NOTICED'}`);
    if (first !== undefined) caught += 1;
  }
  return { offences, caught, frames: frames.length - 1 };
}
