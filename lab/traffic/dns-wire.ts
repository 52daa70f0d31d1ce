/**
 * The little of DNS that the lab's resolver speaks: one question in, address and alias records out (RFC 1035).
 *
 * Questions come from the lab's own clients, so compression in them is refused instead of followed.
 */

export const recordTypes = { a: 1, cname: 5, aaaa: 28, opt: 41 } as const;
const classIn = 1;

export interface DnsQuestion {
  id: number;
  name: string;
  type: number;
  isRecursionDesired: boolean;
  /** The largest UDP answer that the client takes: 512, or what its OPT record says. */
  udpBytesMax: number;
  /** The question as it stood on the wire, copied into the answer. */
  wire: Buffer;
}

export interface DnsRecord {
  name: string;
  type: number;
  ttlSeconds: number;
  data: Buffer;
}

/** Parses a query with one question, or null when it is none. */
export function parseQuery(message: Buffer): DnsQuestion | null {
  if (message.length < 17) return null;
  const flags = message.readUInt16BE(2);
  if (flags & 0x8000 || message.readUInt16BE(4) !== 1) return null;
  const labels: string[] = [];
  let at = 12;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > 63) return null;
    at += 1;
    if (length === 0) break;
    labels.push(message.toString('latin1', at, at + length).toLowerCase());
    at += length;
  }
  if (at + 4 > message.length) return null;
  return {
    id: message.readUInt16BE(0),
    name: labels.join('.'),
    type: message.readUInt16BE(at),
    isRecursionDesired: (flags & 0x0100) !== 0,
    udpBytesMax: readUdpBytesMax(message, at + 4),
    wire: message.subarray(12, at + 4),
  };
}

function readUdpBytesMax(message: Buffer, at: number): number {
  const hasOpt = message.readUInt16BE(10) > 0 && message.length >= at + 11 && message[at] === 0;
  if (!hasOpt || message.readUInt16BE(at + 1) !== recordTypes.opt) return 512;
  return Math.max(512, message.readUInt16BE(at + 3));
}

/** Writes the answer; `isKnown` false gives NXDOMAIN. */
export function writeAnswer(question: DnsQuestion, records: readonly DnsRecord[], isKnown: boolean): Buffer {
  return Buffer.concat([
    writeHeader(question, records.length, isKnown ? 0 : 3),
    question.wire,
    ...records.map((record) => {
      const fixed = Buffer.alloc(10);
      fixed.writeUInt16BE(record.type, 0);
      fixed.writeUInt16BE(classIn, 2);
      fixed.writeUInt32BE(record.ttlSeconds, 4);
      fixed.writeUInt16BE(record.data.length, 8);
      return Buffer.concat([writeName(record.name), fixed, record.data]);
    }),
  ]);
}

/** The empty answer that tells a UDP client to ask again over TCP. */
export function writeTruncated(question: DnsQuestion): Buffer {
  const header = writeHeader(question, 0, 0);
  header[2] = header[2]! | 0x02;
  return Buffer.concat([header, question.wire]);
}

function writeHeader(question: DnsQuestion, answers: number, code: number): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(question.id, 0);
  header.writeUInt16BE(0x8080 | (question.isRecursionDesired ? 0x0100 : 0) | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers, 6);
  return header;
}

/** A name as length-prefixed labels. */
export function writeName(name: string): Buffer {
  const labels = name.split('.').map((label) => {
    return Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
  });
  return Buffer.concat([...labels, Buffer.from([0])]);
}
