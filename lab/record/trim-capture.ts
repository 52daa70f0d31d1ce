/**
 * Makes a small capture of a whole one: only the given span of time, and of each packet only what the sensor reads.
 *
 * Kept whole is what names are read from: everything a client sends to a server (hellos, requests) and DNS. Of the
 * rest the headers stay; the record's original length and the IP total length still say how big each packet was.
 */

const fileHeaderBytes = 24;
const recordHeaderBytes = 16;
const etherTypes = { ipv4: 0x0800, ipv6: 0x86dd } as const;
/** Ethernet, IPv6 and TCP headers with options. */
const headerBytesMax = 14 + 40 + 60;
const serverPorts: ReadonlySet<number> = new Set([43, 80, 443]);
const dnsPort = 53;

export interface Span {
  /** First millisecond inside, first one after. */
  fromMs: number;
  toMs: number;
}

export interface TrimmedCapture {
  file: Buffer;
  packets: number;
}

/** Trims a classic pcap file as tcpdump writes it here: little-endian, microseconds, Ethernet. Throws for any other. */
export function trimCapture(whole: Buffer, span: Span): TrimmedCapture {
  if (whole.readUInt32LE(0) !== 0xa1b2c3d4 || whole.readUInt32LE(20) !== 1) {
    throw new Error('the capture is no little-endian pcap file of Ethernet frames in microseconds');
  }
  const pieces: Buffer[] = [whole.subarray(0, fileHeaderBytes)];
  let packets = 0;
  let at = fileHeaderBytes;
  while (at + recordHeaderBytes <= whole.length) {
    const atMs = whole.readUInt32LE(at) * 1000 + whole.readUInt32LE(at + 4) / 1000;
    const captured = whole.readUInt32LE(at + 8);
    const start = at + recordHeaderBytes;
    at = start + captured;
    if (at > whole.length) break;
    if (atMs < span.fromMs || atMs >= span.toMs) continue;
    const frame = whole.subarray(start, at);
    const kept = Math.min(captured, countKeptBytes(frame));
    const header = Buffer.from(whole.subarray(start - recordHeaderBytes, start));
    header.writeUInt32LE(kept, 8);
    pieces.push(header, frame.subarray(0, kept));
    packets += 1;
  }
  return { file: Buffer.concat(pieces), packets };
}

function countKeptBytes(frame: Buffer): number {
  const transport = findTransport(frame);
  if (!transport) return headerBytesMax;
  const [source, destination] = [frame.readUInt16BE(transport.at), frame.readUInt16BE(transport.at + 2)];
  if (source === dnsPort || destination === dnsPort || serverPorts.has(destination)) return frame.length;
  // Data offset of TCP in 32-bit words; UDP has eight bytes.
  return transport.at + (transport.protocol === 6 ? (frame[transport.at + 12]! >> 4) * 4 : 8);
}

function findTransport(frame: Buffer): { at: number; protocol: number } | null {
  const type = frame.readUInt16BE(12);
  if (type === etherTypes.ipv4) return checkTransport(frame, 14 + (frame[14]! & 15) * 4, frame[23]!);
  if (type === etherTypes.ipv6) return checkTransport(frame, 54, frame[20]!);
  return null;
}

function checkTransport(frame: Buffer, at: number, protocol: number) {
  const bytes = protocol === 6 ? 20 : protocol === 17 ? 8 : Number.POSITIVE_INFINITY;
  return at + bytes <= frame.length ? { at, protocol } : null;
}
