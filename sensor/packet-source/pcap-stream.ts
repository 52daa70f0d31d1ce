/**
 * A pcap stream in pieces as they come out of a pipe, in the byte order and the time unit that its head tells.
 */
import type { ObserveFrame } from './packet-source.ts';

const headBytes = 24;
const recordBytes = 16;
/** No frame of a live interface is longer; a longer record means that the stream is out of step. */
const frameBytesMax = 1024 * 1024;

export interface PcapStream {
  /** Link type of the frames, null until the head has come. */
  readonly linkType: number | null;
  /** Takes a piece and hands over the frames that it completes. Throws when the stream is none. */
  push(piece: Buffer, observe: ObserveFrame): void;
}

/** A reader of a stream; frames longer than `frameBytesWhole` on the wire count as merged by offload. */
export function createPcapStream(frameBytesWhole: number): PcapStream {
  let rest: Buffer = Buffer.alloc(0);
  let linkType: number | null = null;
  let isLittle = true;
  let nanosecondsPerUnit = 1000;

  const word = (bytes: Buffer, at: number) => (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));

  function readHead(bytes: Buffer): void {
    const magics = [
      [0xa1b2c3d4, 1000],
      [0xa1b23c4d, 1],
    ] as const;
    for (const little of [true, false]) {
      isLittle = little;
      const known = magics.find(([magic]) => word(bytes, 0) === magic);
      if (!known) continue;
      nanosecondsPerUnit = known[1];
      linkType = word(bytes, 20) & 0xffff;
      return;
    }
    throw new Error('what came out of tcpdump is no capture');
  }

  return {
    get linkType() {
      return linkType;
    },
    push(piece, observe) {
      const bytes = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
      let at = 0;
      if (linkType === null) {
        if (bytes.length < headBytes) {
          rest = bytes;
          return;
        }
        readHead(bytes);
        at = headBytes;
      }
      while (at + recordBytes <= bytes.length) {
        const captured = word(bytes, at + 8);
        if (captured > frameBytesMax) throw new Error('the stream of tcpdump is out of step');
        if (at + recordBytes + captured > bytes.length) break;
        const wire = word(bytes, at + 12);
        const seconds = word(bytes, at);
        const nanoseconds = word(bytes, at + 4) * nanosecondsPerUnit;
        const segments = wire > frameBytesWhole ? 0 : 1;
        observe(bytes, at + recordBytes, captured, wire, seconds, nanoseconds, -1, segments);
        at += recordBytes + captured;
      }
      rest = bytes.subarray(at);
    },
  };
}
