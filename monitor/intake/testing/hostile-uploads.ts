/**
 * Hostile bodies: few bytes that decode to much data, each of a different kind. Reproducible by seed.
 */
import { gzipSync, zstdCompressSync } from 'node:zlib';

/** A number from 0 to below 1. */
export type Random = () => number;

/** A body and its description. */
export interface HostileUpload {
  kind: string;
  wire: 'telemetry' | 'live';
  encoding: 'zstd' | 'gzip';
  body: Uint8Array;
}

/** Encoded fields of a message. */
type Bytes = Uint8Array;

const varint = (value: number): number[] => {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return [...bytes, left];
    bytes.push((left % 128) + 128);
  }
};
const tagged = (number: number, payload: Bytes): Bytes =>
  Buffer.concat([Uint8Array.from([...varint(number * 8 + 2), ...varint(payload.length)]), payload]);
const number = (field: number, value: number): Bytes =>
  Uint8Array.from([...varint(field * 8), ...varint(value)]);
const repeated = (part: Bytes, bytes: number): Bytes =>
  Buffer.alloc(Math.max(part.length, bytes - (bytes % part.length)), part);
/** Nested messages of at least this many bytes. Written from the inside out, without a copy for each level. */
const nested = (bytes: number): Bytes => {
  const heads: number[][] = [];
  let size = 0;
  while (size < bytes) {
    const head = [...varint(5 * 8 + 2), ...varint(size)];
    heads.push(head);
    size += head.length;
  }
  return Uint8Array.from(heads.reverse().flat());
};
const text = (field: number, value: string): Bytes => tagged(field, Buffer.from(value));

const spool = '00000000-0000-4000-8000-000000000001';
const uploadHead = Buffer.concat([number(1, 1), text(2, spool), number(3, 1), text(4, '1')]);
const liveHead = Buffer.concat([number(1, 1), text(2, spool), text(3, '1')]);
const minuteHead = Buffer.concat([
  number(1, 1_800_000_000),
  text(2, 'eth0'),
  number(3, 1),
  tagged(5, new Uint8Array()),
]);
const windowHead = Buffer.concat([
  text(1, 'eth0'),
  number(2, 1),
  number(3, 1_800_000_000_000),
  number(4, 1000),
]);

/** By kind: the message's bytes, about this many. */
const messages: Record<string, { wire: 'telemetry' | 'live'; make(bytes: number, random: Random): Bytes }> = {
  'empty minutes': { wire: 'telemetry', make: (bytes) => repeated(tagged(5, new Uint8Array()), bytes) },
  'empty gaps': { wire: 'telemetry', make: (bytes) => repeated(tagged(6, new Uint8Array()), bytes) },
  'empty windows': { wire: 'live', make: (bytes) => repeated(tagged(4, new Uint8Array()), bytes) },
  'empty hosts of one minute': {
    wire: 'telemetry',
    make: (bytes) => tagged(5, Buffer.concat([minuteHead, repeated(tagged(6, new Uint8Array()), bytes)])),
  },
  'empty hosts of 64 minutes': {
    wire: 'telemetry',
    make: (bytes) =>
      Buffer.concat(
        Array.from({ length: 64 }, () =>
          tagged(5, Buffer.concat([minuteHead, repeated(tagged(6, new Uint8Array()), bytes / 64)])),
        ),
      ),
  },
  'nested empty addresses': {
    wire: 'telemetry',
    make: (bytes) => tagged(7, repeated(tagged(2, repeated(tagged(10, new Uint8Array()), 128)), bytes)),
  },
  'totals again and again': {
    wire: 'telemetry',
    make: (bytes) => tagged(5, repeated(tagged(5, new Uint8Array()), bytes)),
  },
  'inventory again and again': {
    wire: 'telemetry',
    make: (bytes) => repeated(tagged(7, number(1, 1)), bytes),
  },
  'a huge packed column': {
    wire: 'telemetry',
    make: (bytes) => tagged(5, Buffer.concat([minuteHead, tagged(7, tagged(2, new Uint8Array(bytes)))])),
  },
  'a huge packed column of 64 bits': {
    wire: 'telemetry',
    make: (bytes) => tagged(5, Buffer.concat([minuteHead, tagged(7, tagged(9, new Uint8Array(bytes)))])),
  },
  'a column of single numbers': {
    wire: 'telemetry',
    make: (bytes) => tagged(5, Buffer.concat([minuteHead, tagged(7, repeated(number(2, 1), bytes))])),
  },
  'a huge packed column of probes': {
    wire: 'telemetry',
    make: (bytes) => tagged(8, tagged(1, new Uint8Array(bytes))),
  },
  'a huge packed column of live hosts': {
    wire: 'live',
    make: (bytes) => tagged(4, Buffer.concat([windowHead, tagged(6, tagged(2, new Uint8Array(bytes)))])),
  },
  'empty texts': {
    wire: 'telemetry',
    make: (bytes) => tagged(5, Buffer.concat([minuteHead, tagged(7, repeated(text(1, ''), bytes))])),
  },
  'a huge text': { wire: 'telemetry', make: (bytes) => text(4, 'x'.repeat(bytes)) },
  'a huge capture name': { wire: 'live', make: (bytes) => tagged(4, text(1, 'x'.repeat(bytes))) },
  'a sensor version again and again': { wire: 'live', make: (bytes) => repeated(text(3, 'x'), bytes) },
  'nested groups': { wire: 'telemetry', make: (bytes) => repeated(Uint8Array.of(0xf3, 0x01), bytes) },
  'nested groups in a minute': {
    wire: 'telemetry',
    make: (bytes) => tagged(5, repeated(Uint8Array.of(0x7b), bytes)),
  },
  'nested messages': {
    wire: 'telemetry',
    make: (bytes) => {
      const inner = nested(Math.min(bytes, 20_000));
      return repeated(inner, bytes);
    },
  },
  'unknown fields': { wire: 'telemetry', make: (bytes) => repeated(number(15, 1), bytes) },
  'unknown fields in live windows': {
    wire: 'live',
    make: (bytes) => tagged(4, repeated(text(15, 'x'), bytes)),
  },
  'lengths that lie': {
    wire: 'telemetry',
    make: (bytes) => Buffer.concat([Uint8Array.of(0x2a, 0xff, 0xff, 0xff, 0x7f), new Uint8Array(bytes)]),
  },
  'numbers without an end': { wire: 'live', make: (bytes) => repeated(Uint8Array.of(0xff), bytes) },
  'another wire type': { wire: 'telemetry', make: (bytes) => repeated(number(5, 1), bytes) },
  zeros: { wire: 'telemetry', make: (bytes) => new Uint8Array(bytes) },
  'random bytes': {
    wire: 'live',
    make: (bytes, random) =>
      repeated(
        Uint8Array.from({ length: 997 }, () => Math.floor(random() * 256)),
        bytes,
      ),
  },
};

/** All kinds. */
export const hostileKinds: readonly string[] = Object.keys(messages);

/** A hostile upload of this kind, of about this many bytes before compression. */
export function makeUploadOf(kind: string, bytes: number, random: Random): HostileUpload {
  const { wire, make } = messages[kind]!;
  const head = wire === 'live' ? liveHead : uploadHead;
  // One in two begins like an honest upload.
  const message = Buffer.concat([random() < 0.5 ? head : new Uint8Array(), make(bytes, random)]);
  const encoding = random() < 0.5 ? 'zstd' : 'gzip';
  return { kind, wire, encoding, body: encoding === 'zstd' ? zstdCompressSync(message) : gzipSync(message) };
}
