/** What `sensor detect` says of recorded packets, and how much of them there was, counted without the detector. */
import { writeFileSync } from 'node:fs';
import { openCaptureFile } from '#sensor/capture-files/index.ts';
import { detectFile } from '#sensor/capture-reader/index.ts';
import { dividedThresholds } from '#sensor/testing/attack-traffic.ts';
import { pcapFile } from '#sensor/testing/capture-files.ts';
import { insidePrefixes } from '#sensor/testing/tool-link.ts';

/** Frames of Ethernet with their times; those of a few seconds fit in memory. */
export interface RecordedFrame {
  bytes: Uint8Array;
  seconds: number;
  nanoseconds: number;
  wireLength: number;
}

export interface FoundIncident {
  target: { kind: string; value: string };
  direction: string;
  class: string;
  severity: string;
  peak: { bps: number; pps: number };
  detected_at: string;
}

export function readRecorded(file: string): RecordedFrame[] {
  const capture = openCaptureFile(file);
  const frames: RecordedFrame[] = [];
  while (capture.next()) {
    const { bytes, offset, capturedLength, wireLength, seconds, nanoseconds } = capture;
    frames.push({ bytes: bytes.slice(offset, offset + capturedLength), seconds, nanoseconds, wireLength });
  }
  capture.close();
  return frames;
}

/** What `./svc sensor detect FILE --json` prints, with the default thresholds divided by `divisor`. */
export async function detectRecorded(
  file: string,
  divisor: number,
  protect: readonly string[] = insidePrefixes,
): Promise<FoundIncident[]> {
  const limits = `${file}.limits.json`;
  writeFileSync(limits, JSON.stringify(dividedThresholds(divisor)));
  const written: string[] = [];
  const options = { json: true, protect: [...protect], thresholds: limits };
  const complaints: string[] = [];
  const status = await detectFile(file, options, {
    out: {
      write: (text) => written.push(text),
      writeBytes() {
        throw new Error('JSON is text');
      },
      end() {},
    },
    look: { width: null, isColored: false },
    terminal: null,
    complain: (sentence) => complaints.push(sentence),
  });
  if (status !== 0) throw new Error(`sensor detect: ${complaints.join(' ')}`);
  return (JSON.parse(written.join('')) as { incidents: FoundIncident[] }).incidents;
}

/** An incident in a line. */
export function describeIncident({ target, direction, class: name, severity }: FoundIncident): string {
  return `${target.value} ${direction} ${name} ${severity}`;
}

const macBytes = 14;

export interface SecondOfTraffic {
  packets: number;
  /** Without the link's header. */
  bytes: number;
  /** TCP with SYN and without ACK. */
  openings: number;
}

/** The whole seconds of one direction: all but the first and the last. */
export function wholeSeconds(frames: readonly RecordedFrame[], direction: 'in' | 'out'): SecondOfTraffic[] {
  const seconds = new Map<number, SecondOfTraffic>();
  for (const frame of frames) {
    const one = seconds.get(frame.seconds) ?? { packets: 0, bytes: 0, openings: 0 };
    seconds.set(frame.seconds, one);
    if (isInbound(frame) !== (direction === 'in')) continue;
    one.packets += 1;
    one.bytes += frame.wireLength - macBytes;
    if (isOpening(frame.bytes)) one.openings += 1;
  }
  return [...seconds]
    .toSorted(([a], [b]) => a - b)
    .slice(1, -1)
    .map(([, one]) => one);
}

/** By the link's destination: the last byte is of the inside's end. */
export function isInbound({ bytes }: RecordedFrame): boolean {
  return bytes[5] === 0xfe;
}

function isOpening(bytes: Uint8Array): boolean {
  const [at, protocol] = bytes[12] === 0x08 ? [34, bytes[23]] : [54, bytes[20]];
  return protocol === 6 && ((bytes[at + 13] ?? 0) & 0x12) === 2;
}

/** The middle value of what `of` says of the seconds; 0 without any. */
export function medianOf(
  seconds: readonly SecondOfTraffic[],
  of: (second: SecondOfTraffic) => number,
): number {
  const values = seconds.map(of).toSorted((a, b) => a - b);
  return values[values.length >> 1] ?? 0;
}

export function writeRecorded(file: string, frames: readonly RecordedFrame[]): void {
  writeFileSync(file, pcapFile(frames));
}
