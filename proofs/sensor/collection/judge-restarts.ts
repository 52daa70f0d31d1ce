/** Compares what a sensor uploaded over its restarts with the ledger of the frames that were sent to it. */
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';

/** A frame that was sent; each has its own address. */
export interface SentFrame {
  address: string;
  ipBytes: number;
  sentAtMs: number;
}

/** A time in which a restart or a death may have kept the sensor from listening. */
export interface Interruption {
  fromMs: number;
  toMs: number;
}

export interface RestartVerdict {
  offences: string[];
  heardFrames: number;
  heardBytes: number;
  /** Length of each time in which no frame was heard. */
  deafMs: number[];
}

/** A frame that was sent this close to the turn of a minute may count in either. */
const turnMs = 100;
/** How exactly the edges of what was heard are known from frames, for each edge. */
const edgeMs = 250;

const clock = (ms: number) => (Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, 23) : 'the end');

/**
 * `frames` in the order of sending, the last of them a mere mark of the end. `inKernel`: the kernel counts, so the part at the end is
 * left to the next start, which has the rest or names it.
 */
export function judgeRestarts(
  uploads: readonly TelemetryUpload[],
  frames: readonly SentFrame[],
  interruptions: readonly Interruption[],
  inKernel = false,
): RestartVerdict {
  const offences: string[] = [];
  const heard = new Map<string, { minute: number; bytes: number; times: number }>();
  const minutes = new Map<number, { observedMs: number; bytes: number; hasGap: boolean }>();
  const of = (minute: number) => {
    const known = minutes.get(minute) ?? { observedMs: 0, bytes: 0, hasGap: false };
    minutes.set(minute, known);
    return known;
  };
  for (const upload of uploads) {
    for (const { minute, observedMs, totals, hosts } of upload.minutes) {
      of(minute).observedMs += observedMs;
      of(minute).bytes += totals.ipBytes;
      for (const { address, rxBytes, txBytes } of hosts) {
        const times = (heard.get(address)?.times ?? 0) + 1;
        heard.set(address, { minute, bytes: rxBytes + txBytes, times });
      }
    }
    for (const { fromMinute, toMinute } of upload.gaps)
      for (let minute = fromMinute; minute <= toMinute; minute += 60) of(minute).hasGap = true;
  }

  const deaf: Interruption[] = [];
  const deafOfMinute = new Map<number, { ms: number; edges: number }>();
  const noteDeaf = (fromMs: number, toMs: number) => {
    for (let from = fromMs; from < toMs; ) {
      const minute = Math.floor(from / 60_000) * 60;
      const to = Math.min(toMs, (minute + 60) * 1000);
      const sum = deafOfMinute.get(minute) ?? { ms: 0, edges: 0 };
      const edges = (from === fromMs ? 1 : 0) + (to === toMs ? 1 : 0);
      deafOfMinute.set(minute, { ms: sum.ms + to - from, edges: sum.edges + edges });
      from = to;
    }
  };
  const bytesOfMinute = new Map<number, number>();
  let heardBytes = 0;
  for (const [i, frame] of frames.slice(0, -1).entries()) {
    const { address, ipBytes, sentAtMs } = frame;
    const until = frames[i + 1]!.sentAtMs;
    const found = heard.get(address);
    if (found) {
      heardBytes += ipBytes;
      bytesOfMinute.set(found.minute, (bytesOfMinute.get(found.minute) ?? 0) + ipBytes);
      if (found.times > 1) offences.push(`frame ${i} is counted ${found.times} times`);
      if (found.bytes !== ipBytes) offences.push(`frame ${i} has ${found.bytes} of ${ipBytes} bytes`);
      const isIn = (ms: number) => Math.floor(ms / 60_000) * 60 === found.minute;
      if (!isIn(sentAtMs - turnMs) && !isIn(sentAtMs + turnMs))
        offences.push(`frame ${i} is in another minute`);
      continue;
    }
    const last = deaf.at(-1);
    if (last?.toMs === sentAtMs) last.toMs = until;
    else deaf.push({ fromMs: sentAtMs, toMs: until });
  }
  for (const { fromMs, toMs } of deaf) noteDeaf(fromMs, toMs);
  // The sensor starts after the first frame, and ends before the last.
  const [startMs, endMs] = [frames[0]!.sentAtMs, frames.at(-1)!.sentAtMs];
  noteDeaf(Math.floor(startMs / 60_000) * 60_000, startMs);
  noteDeaf(endMs, Math.ceil(endMs / 60_000) * 60_000);

  // Where a start took so long that the next death came at once, both are one time.
  const excused: Interruption[] = [];
  for (const { fromMs, toMs } of interruptions) {
    const last = excused.at(-1);
    if (last && fromMs <= last.toMs + edgeMs) last.toMs = toMs;
    else excused.push({ fromMs, toMs });
  }
  for (const { fromMs, toMs } of deaf)
    if (!excused.some((one) => one.fromMs - edgeMs <= fromMs && toMs <= one.toMs + edgeMs))
      offences.push(
        `${toMs - fromMs} ms were not heard although the sensor ran: from ${clock(fromMs)} on, interruptions ${excused.map((one) => `${clock(one.fromMs)} to ${clock(one.toMs)}`).join(', ')}`,
      );
  // A minute before the first start or after the last end is named by none.
  const [bornMs, goneMs] = [interruptions[0]!.toMs, interruptions.at(-1)!.fromMs];
  const lastMinute = Math.floor(goneMs / 60_000) * 60;
  // Where no frame is sent while the sensor ends, its end is not known better.
  const endingMs = inKernel ? interruptions.at(-1)!.toMs - goneMs : 0;
  for (const [minute, { observedMs, bytes, hasGap }] of minutes) {
    const at = new Date(minute * 1000).toISOString().slice(11, 16);
    if (bytes !== (bytesOfMinute.get(minute) ?? 0))
      offences.push(`${at} has ${bytes} bytes, its frames have ${bytesOfMinute.get(minute) ?? 0}`);
    const { ms, edges } = deafOfMinute.get(minute) ?? { ms: 0, edges: 0 };
    const named = 60_000 - observedMs;
    const isLast = minute === lastMinute;
    if (named > ms + edges * edgeMs || named < ms - edges * edgeMs - (isLast ? endingMs : 0))
      offences.push(`${at} names ${named} ms without the sensor, ${Math.round(ms)} were`);
    if (observedMs < 60_000 && !hasGap && !(inKernel && isLast))
      offences.push(`${at} is partial without a gap`);
    if (observedMs >= 60_000 && hasGap) offences.push(`${at} is whole and a gap`);
  }
  for (const minute of deafOfMinute.keys())
    if (!minutes.has(minute) && (minute + 60) * 1000 > bornMs && minute * 1000 < goneMs)
      offences.push('a minute is missing without a gap');
  return { offences, heardFrames: heard.size, heardBytes, deafMs: deaf.map((one) => one.toMs - one.fromMs) };
}

/** What is planted into the uploads, to see that it is noticed. */
export const restartPlants = {
  'the rest of a minute is dropped': (uploads: TelemetryUpload[]) =>
    uploads.filter(({ minutes: [part] }, i) => {
      const isRest = uploads.slice(0, i).some((one) => one.minutes[0]?.minute === part?.minute);
      return part === undefined || !isRest;
    }),
  'a part comes twice': (uploads: TelemetryUpload[]) => [
    ...uploads,
    uploads.find(({ minutes }) => minutes.length > 0)!,
  ],
  'no gap names the parts': (uploads: TelemetryUpload[]) => uploads.map((one) => ({ ...one, gaps: [] })),
  'the downtime is taken for observed': (uploads: TelemetryUpload[]) =>
    uploads.map((one) => ({
      ...one,
      minutes: one.minutes.map((part) => ({ ...part, observedMs: part.observedMs + 10_000 })),
    })),
};
