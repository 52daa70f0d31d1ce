/**
 * Builds frames for tests and benchmarks: Ethernet, VLAN tags, IPv4 and IPv6, TCP, UDP, TLS hellos, DNS messages.
 *
 * Checksums are left zero: the engine does not verify them, because captures of offloaded traffic have wrong ones.
 */
import { parseAddress } from '#common/ip/index.ts';

/** Concatenates bytes. */
export function join(...parts: (Uint8Array | readonly number[])[]): Uint8Array {
  return joinAll(parts);
}

/** The same for any number of parts. */
export function joinAll(parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    // For a part of few bytes a call of `set` costs more than the copy.
    if (part.length > 32) joined.set(part, at);
    else for (let i = 0; i < part.length; i += 1) joined[at + i] = part[i]!;
    at += part.length;
  }
  return joined;
}

/** Two bytes, most significant first. */
export function u16(value: number): number[] {
  return [(value >>> 8) & 255, value & 255];
}

/** Four bytes, most significant first. */
export function u32(value: number): number[] {
  return [(value >>> 24) & 255, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
}

/** Bytes of ASCII text. */
export function ascii(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const defaultSource = [0x02, 0, 0, 0, 0, 0x01];

/** An Ethernet frame; `tags` are VLAN ids, outermost first. */
export function ethernet(
  payload: Uint8Array,
  options: { source?: string; tags?: number[]; type?: number } = {},
): Uint8Array {
  const source = options.source?.split(':').map((part) => Number.parseInt(part, 16)) ?? defaultSource;
  const type = options.type ?? (payload[0]! >> 4 === 6 ? 0x86dd : 0x0800);
  const tags = options.tags?.flatMap((tag) => [0x81, 0x00, ...u16(tag)]) ?? [];
  return join([0x02, 0, 0, 0, 0, 0xfe], source, tags, u16(type), payload);
}

export interface IpOptions {
  from: string;
  to: string;
  protocol: number;
  id?: number;
  /** Fragment offset in bytes, and whether more follow. */
  offset?: number;
  more?: boolean;
}

/** Traffic uses few addresses, and parsing one costs as much as the rest of its packet. */
const addresses = new Map<string, Uint8Array>();
const addressesMax = 10_000;

function addressBytes(text: string): Uint8Array {
  const known = addresses.get(text);
  if (known) return known;
  const bytes = parseAddress(text)!;
  if (addresses.size >= addressesMax) addresses.clear();
  addresses.set(text, bytes);
  return bytes;
}

/** An IPv4 or IPv6 packet, after the addresses' family. */
export function ip(payload: Uint8Array, options: IpOptions): Uint8Array {
  const from = addressBytes(options.from);
  const to = addressBytes(options.to);
  if (from.length === 16) {
    return join([0x60, 0, 0, 0], u16(payload.length), [options.protocol, 64], from, to, payload);
  }
  const fragment = ((options.offset ?? 0) >> 3) | (options.more ? 0x2000 : 0);
  const header = [
    0x45,
    0,
    ...u16(20 + payload.length),
    ...u16(options.id ?? 0),
    ...u16(fragment),
    64,
    options.protocol,
  ];
  return join(header, [0, 0], from, to, payload);
}

export interface SegmentOptions {
  from: string;
  fromPort: number;
  to: string;
  toPort: number;
}

/** Flags of TCP as a number: FIN 1, SYN 2, RST 4, PSH 8, ACK 16. */
export const Tcp = { fin: 1, syn: 2, reset: 4, push: 8, ack: 16 } as const;

/** An IP packet with a TCP segment. */
export function tcp(
  ends: SegmentOptions,
  flags: number,
  sequence: number,
  data: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const header = join(
    u16(ends.fromPort),
    u16(ends.toPort),
    u32(sequence),
    u32(0),
    [0x50, flags],
    u16(8192),
    [0, 0, 0, 0],
  );
  return ip(join(header, data), { from: ends.from, to: ends.to, protocol: 6 });
}

/** An IP packet with a UDP datagram. */
export function udp(ends: SegmentOptions, data: Uint8Array): Uint8Array {
  const header = join(u16(ends.fromPort), u16(ends.toPort), u16(8 + data.length), [0, 0]);
  return ip(join(header, data), { from: ends.from, to: ends.to, protocol: 17 });
}

/** The same ends in the other direction. */
export function reverse(ends: SegmentOptions): SegmentOptions {
  return { from: ends.to, fromPort: ends.toPort, to: ends.from, toPort: ends.fromPort };
}

export interface HelloOptions {
  /** Null for a hello without a server name. */
  host: string | null;
  /** Bytes of extensions before the server name, like a large key share. */
  before?: number;
  /** Bytes in each TLS record. */
  recordBytes?: number;
}

/** A TLS ClientHello in its records. */
export function clientHello(options: HelloOptions): Uint8Array {
  const extensions: (Uint8Array | number[])[] = [];
  if (options.before)
    extensions.push(u16(51), u16(options.before), new Uint8Array(options.before).fill(0x5a));
  if (options.host !== null) {
    const name = ascii(options.host);
    extensions.push(u16(0), u16(name.length + 5), u16(name.length + 3), [0], u16(name.length), name);
  }
  extensions.push(u16(16), u16(5), [0, 3, 2, 0x68, 0x32]);
  const all = join(...extensions);
  const body = join(
    [3, 3],
    new Uint8Array(32).fill(7),
    [32],
    new Uint8Array(32).fill(9),
    u16(4),
    [0x13, 1, 0x13, 2],
    [1, 0],
    u16(all.length),
    all,
  );
  const message = join([1, 0], u16(body.length), body);
  const size = options.recordBytes ?? 16_384;
  const records: Uint8Array[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(join([22, 3, 1], u16(part.length), part));
  }
  return join(...records);
}

/** A name in DNS form. */
export function dnsNameBytes(name: string): Uint8Array {
  const labels = name.split('.').map((label) => join([label.length], ascii(label)));
  return join(...labels, [0]);
}

export interface DnsRecord {
  name: string;
  ttl: number;
  address?: string;
  cname?: string;
}

export interface DnsOptions {
  id: number;
  name: string;
  type?: number;
  answers?: DnsRecord[];
}

/** A DNS message: a question without `answers`, else an answer. */
export function dnsMessage(options: DnsOptions): Uint8Array {
  const isAnswer = options.answers !== undefined;
  const records = (options.answers ?? []).map((record) => {
    const data = record.cname ? dnsNameBytes(record.cname) : parseAddress(record.address!)!;
    const type = record.cname ? 5 : data.length === 4 ? 1 : 28;
    return join(dnsNameBytes(record.name), u16(type), u16(1), u32(record.ttl), u16(data.length), data);
  });
  const header = join(
    u16(options.id),
    u16(isAnswer ? 0x8180 : 0x0100),
    u16(1),
    u16(records.length),
    u16(0),
    u16(0),
  );
  return join(header, dnsNameBytes(options.name), u16(options.type ?? 1), u16(1), ...records);
}
