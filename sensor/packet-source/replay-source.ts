/**
 * Replays a capture file repeatedly as if its frames came now.
 *
 * Times are shifted by whole minutes, so a frame keeps its second within the minute, and every round gives the same
 * minutes. A round begins at the start of the recording and of a UTC minute. Frames due before the source was opened
 * are left out, as in a live capture. Frames are passed on when the wall clock reaches them.
 */
import { CodedError } from '#common/errors/index.ts';
import { type CaptureFile, NotACaptureError, openCaptureFile } from '#sensor/capture-files/index.ts';
import type { ObserveFrame, PacketSource } from './packet-source.ts';

/** A larger change of the wall clock between two polls is a clock step and starts a new round. */
const clockJumpMs = 60_000;
/** Maximum number of frames in one poll, so that minutes are closed in time. */
const framesPerPoll = 20_000;

interface Recording {
  linkType: number;
  firstMinute: number;
  /** Whole minutes, in seconds. */
  lengthSeconds: number;
}

/** Opens a recording for replay. Throws `capture.no_recording` when it can not be read or is empty. */
export function openReplaySource(path: string, nowMs: () => number = Date.now): PacketSource {
  const recording = survey(path);
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  let file: CaptureFile | null = null;
  let hasFrame = false;
  /** Offset of the recorded seconds in this round. */
  let shift = 0;
  let skipBeforeMs = 0;
  let lastPollMs = Number.NaN;

  function beginRound(startMinute: number): void {
    file?.close();
    file = openCaptureFile(path);
    shift = startMinute - recording.firstMinute;
    hasFrame = advance();
  }

  /** Reads the next frame of the recording's link type. */
  function advance(): boolean {
    while (file?.next()) if (file.linkType === recording.linkType) return true;
    return false;
  }

  const dueMs = (frame: CaptureFile) => (frame.seconds + shift) * 1000 + frame.nanoseconds / 1e6;

  function anchor(now: number): void {
    skipBeforeMs = now;
    beginRound(Math.floor(now / 60_000) * 60);
  }

  /** Passes on the due frames. Returns when the next frame is due. */
  function play(now: number, observe: ObserveFrame): number {
    for (let frames = 0; frames < framesPerPoll; ) {
      if (!hasFrame) {
        const nextRound = recording.firstMinute + shift + recording.lengthSeconds;
        if (nextRound * 1000 > now) return nextRound * 1000;
        beginRound(nextRound);
        continue;
      }
      const frame = file!;
      const due = dueMs(frame);
      if (due > now) return due;
      if (due >= skipBeforeMs) {
        const { bytes, offset, capturedLength, wireLength, seconds, nanoseconds } = frame;
        observe(bytes, offset, capturedLength, wireLength, seconds + shift, nanoseconds, -1, 1);
        frames += 1;
      }
      hasFrame = advance();
    }
    return now;
  }

  return {
    linkType: recording.linkType,
    method: 'replay',
    countsSegments: true,
    fanoutGroup: null,
    settleMs: 1000,
    lingerMs: 0,
    poll(timeoutMs, observe) {
      const now = nowMs();
      if (!(Math.abs(now - lastPollMs) <= clockJumpMs)) anchor(now);
      lastPollMs = now;
      const waitMs = Math.min(timeoutMs, play(now, observe) - now);
      if (waitMs > 0) Atomics.wait(sleeper, 0, 0, waitMs);
    },
    takeDropped: () => 0,
    close() {
      file?.close();
      file = null;
    },
  };
}

/** Reads the whole recording once to find its length. */
function survey(path: string): Recording {
  let file: CaptureFile;
  try {
    file = openCaptureFile(path);
  } catch (error) {
    if (!(error instanceof NotACaptureError)) throw error;
    throw new CodedError('capture.no_recording', `SVC_SENSOR_REPLAY: ${error.message}`);
  }
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  let linkType = -1;
  while (file.next()) {
    if (linkType < 0) linkType = file.linkType;
    first = Math.min(first, file.seconds);
    last = Math.max(last, file.seconds);
  }
  file.close();
  if (linkType < 0)
    throw new CodedError('capture.no_recording', `SVC_SENSOR_REPLAY: ${path} has no packets.`);
  const minuteOf = (seconds: number) => Math.floor(seconds / 60) * 60;
  const firstMinute = minuteOf(first);
  return { linkType, firstMinute, lengthSeconds: minuteOf(last) + 60 - firstMinute };
}
