/**
 * Parses a pcap stream in pieces from a pipe, in the byte order and time unit of its header.
 */
import type { ObserveFrame } from './packet-source.ts';

const headBytes = 24;
const recordBytes = 16;
/** No frame of a live interface is longer; a longer record means that the stream is out of step. */
const frameBytesMax = 1024 * 1024;

export type PcapStream = ReturnType<typeof createPcapStream>;

/** Creates a parser. Frames longer than `frameBytesWhole` on the wire count as merged by offload. */
export function createPcapStream(frameBytesWhole: number) {
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
    throw new Error('the output of tcpdump is not a capture');
  }

  return {
    /** Link type of the frames, null before the header. */
    get linkType(): number | null {
      return linkType;
    },
    /** Adds a piece and passes on the frames that it completes. Throws when the stream is not pcap. */
    push(piece: Buffer, observe: ObserveFrame) {
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
        if (captured > frameBytesMax) throw new Error('the output of tcpdump is damaged');
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
