/** Protobuf messages that hold what few schemas have a place for. */
import { seededRandom } from '#common/random/index.ts';

type Random = (below: number) => number;

/** One field as the wire has it. Bytes that can be read as a message are one: its fields are changed too. */
interface Field {
  number: number;
  value: bigint | Buffer | Field[];
  /** Of a number: a varint, or 4 or 8 bytes of fixed length. */
  type: 0 | 1 | 2 | 5;
}

const year = (text: string) => BigInt(Date.parse(text));
const times = [year('0000-01-01'), year('+010000-01-01'), year('1970-01-01'), year('+275760-09-12')];
const numbers: readonly bigint[] = [
  ...[0n, 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n],
  ...times.flatMap((ms) => [ms, ms / 1000n]),
].map((one) => BigInt.asUintN(64, one));
const texts: readonly Buffer[] = [
  ...['', '\0', 'a\0b', 'x'.repeat(70_000), '\u202e', '::ffff:203.0.113.10', '0x7f.1', 'NaN'].map((text) =>
    Buffer.from(text),
  ),
  // No UTF-8: a byte that begins nothing, a half of a pair, a text that is cut, and more bytes than a letter needs.
  ...['ff', 'eda080', 'e282', 'c080', 'f8808080af'].map((hex) => Buffer.from(hex, 'hex')),
];

function readVarint(bytes: Buffer, at: number): { value: bigint; end: number } | null {
  let value = 0n;
  for (let i = 0; i < 10 && at + i < bytes.length; i += 1) {
    value |= BigInt(bytes[at + i]! & 127) << BigInt(7 * i);
    if (bytes[at + i]! < 128) return { value, end: at + i + 1 };
  }
  return null;
}

/** The fields of a message, and of those inside it down to a depth; null for other bytes. */
function parse(bytes: Buffer, depth = 8): Field[] | null {
  if (depth === 0) return null;
  const fields: Field[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = readVarint(bytes, at);
    const number = Number((tag?.value ?? 0n) >> 3n);
    const type = Number((tag?.value ?? 0n) & 7n);
    if (tag === null || number === 0 || number > 2 ** 29) return null;
    if (type === 0 || type === 2) {
      const head = readVarint(bytes, tag.end);
      if (head === null) return null;
      at = type === 0 ? head.end : head.end + Number(head.value);
      if (at > bytes.length) return null;
      const inside = type === 0 ? null : bytes.subarray(head.end, at);
      fields.push({
        number,
        type,
        value: inside === null ? head.value : (parse(inside, depth - 1) ?? inside),
      });
    } else if (type === 1 || type === 5) {
      at = tag.end + (type === 1 ? 8 : 4);
      if (at > bytes.length) return null;
      const value = type === 1 ? bytes.readBigUInt64LE(tag.end) : BigInt(bytes.readUInt32LE(tag.end));
      fields.push({ number, type, value });
    } else return null;
  }
  return fields;
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

function encode(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.flatMap(({ number, type, value }) => {
      const tag = varint((BigInt(number) << 3n) | BigInt(type));
      if (typeof value === 'bigint') {
        if (type === 0) return [tag, varint(value)];
        const fixed = Buffer.alloc(8);
        fixed.writeBigUInt64LE(BigInt.asUintN(64, value));
        return [tag, type === 1 ? fixed : fixed.subarray(0, 4)];
      }
      const inside = Buffer.isBuffer(value) ? value : encode(value);
      return [tag, varint(BigInt(inside.length)), inside];
    }),
  );
}

/** The fields with one of them, at any depth, changed: the lengths around it stay right. */
function changeField(fields: readonly Field[], random: Random): Field[] {
  if (fields.length === 0)
    return [{ number: 1 + random(20), type: 0, value: numbers[random(numbers.length)]! }];
  const at = random(fields.length);
  const field = fields[at]!;
  if (Array.isArray(field.value) && random(5) > 0)
    return fields.with(at, { ...field, value: changeField(field.value, random) });
  // Half of the numbers are small: the message may still be taken, and what is behind it sees the change.
  const number = random(2) === 0 ? BigInt(random(1000)) : numbers[random(numbers.length)]!;
  const text = texts[random(texts.length)]!;
  const ways: (() => Field[])[] = [
    // Twice as often as each of the others: another value of the same type.
    () => fields.with(at, { ...field, value: field.type === 2 ? text : number }),
    () => fields.with(at, { ...field, value: field.type === 2 ? text : number }),
    () =>
      fields.with(
        at,
        field.type === 2 ? { ...field, type: 0, value: number } : { ...field, type: 2, value: text },
      ),
    () => fields.with(at, { ...field, number: 1 + random(40) }),
    () => fields.toSpliced(at, 1),
    () => fields.toSpliced(at, 0, ...Array<Field>(1 + random(3000)).fill(field)),
    () => fields.with(at, { ...field, type: 2, value: [...fields] }),
    () => fields.with(at, { ...field, type: 2, value: nest(field.number, 200 + random(20_000)) }),
  ];
  return ways[random(ways.length)]!();
}

/** A field in itself, so many times. */
function nest(number: number, depth: number): Buffer {
  const heads: Buffer[] = [];
  for (let i = 0, length = 0; i < depth; i += 1) {
    const head = Buffer.concat([varint((BigInt(number) << 3n) | 2n), varint(BigInt(length))]);
    heads.push(head);
    length += head.length;
  }
  return Buffer.concat(heads.reverse());
}

/** The bytes with some of them changed, without regard to fields. */
function changeBytes(bytes: Buffer, random: Random): Buffer {
  const copy = Buffer.from(bytes);
  const at = random(copy.length + 1);
  const ways: (() => Buffer)[] = [
    () => {
      for (let i = 0; i <= random(8); i += 1) copy[random(copy.length)]! ^= 1 << random(8);
      return copy;
    },
    () => copy.subarray(0, at),
    () =>
      Buffer.concat([
        copy.subarray(0, at),
        Buffer.from(Array.from({ length: random(64) }, () => random(256))),
        copy.subarray(at),
      ]),
    // A number of eleven bytes, a length of 2^64 - 1, and groups, which no schema has, in one another.
    () => Buffer.concat([copy.subarray(0, at), Buffer.alloc(10, 0xff), Buffer.of(1), copy.subarray(at)]),
    () => Buffer.concat([copy, Buffer.of(0x0a), varint(2n ** 64n - 1n)]),
    () => Buffer.concat([copy, Buffer.alloc(1 + random(50_000), 0x0b)]),
  ];
  return ways[random(ways.length)]!();
}

/** So many messages, each the valid one with one or two changes; the same ones for a seed. */
export function* hostileProtobuf(valid: () => Uint8Array, count: number, seed: number): Generator<Buffer> {
  const uniform = seededRandom(seed);
  const random = (below: number) => Math.floor(uniform() * below);
  for (let i = 0; i < count; i += 1) {
    let bytes: Buffer = Buffer.from(valid());
    for (let change = 0; change <= random(2); change += 1) {
      const fields = random(5) > 0 ? parse(bytes) : null;
      bytes = fields === null ? changeBytes(bytes, random) : encode(changeField(fields, random));
    }
    yield bytes;
  }
}
