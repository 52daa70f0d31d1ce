/**
 * Bounds of a protobuf message, checked on its bytes before anything is decoded.
 *
 * Two bytes on the wire can become a hundred in memory, so a receiver counts first. Every repeated field has a limit,
 * every other field may occur once, every text is short, and what the message would take when decoded is summed with
 * fixed costs. A schema with a repeated field that has no limit is refused when its bounds are compiled, so that a new
 * field can't be forgotten.
 */
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { malformed, textBytesMax } from './telemetry-values.ts';

/** The limit of a repeated field. */
export interface ListLimit {
  max: number;
  /** What it is called in an error; the field's own name when absent. */
  label?: string;
  /** Bytes of the plain data that one element becomes, on top of its message. */
  plainBytes?: number;
}

/** By `Message.field`, as in the .proto file. */
export type ListLimits = Readonly<Record<string, ListLimit>>;

export type WireKind = 'varint' | 'packed' | 'text' | 'message';

export interface FieldBounds {
  kind: WireKind;
  label: string;
  max: number;
  /** Bytes that an element takes when decoded; a text's bytes come on top, twice. */
  decodedBytes: number;
  message: MessageBounds | null;
}

export interface MessageBounds {
  schema: DescMessage;
  /** By field number. */
  fields: readonly (FieldBounds | undefined)[];
}

/** Bounds of messages of one type. */
export type BoundsOf<Desc extends DescMessage> = MessageBounds & { schema: Desc };

/** The object of a decoded message, without its fields. */
const messageBytes = 192;
/** A text: header, pointer and rounding. */
const textHeaderBytes = 48;
/** A number in an array, and a 64-bit one, which is an object. */
const numberBytes = 8;
const bigintBytes = 32;
const fieldNumberMax = 64;

/** Compiles the bounds of a message and of all messages in it. Throws where a repeated field has no limit. */
export function compileBounds<Desc extends DescMessage>(schema: Desc, limits: ListLimits): BoundsOf<Desc> {
  const fields: (FieldBounds | undefined)[] = new Array(fieldNumberMax + 1).fill(undefined);
  for (const field of schema.fields) {
    if (field.number > fieldNumberMax) throw new Error(`${schema.name}.${field.name} has too high a number`);
    fields[field.number] = compileField(schema, field, limits);
  }
  return { schema, fields };
}

function compileField(schema: DescMessage, field: DescField, limits: ListLimits): FieldBounds {
  const name = `${schema.name}.${field.name}`;
  const limit = limits[name];
  if (field.fieldKind === 'list' && !limit) throw new Error(`${name} is repeated and has no limit`);
  if (field.fieldKind === 'map') throw new Error(`${name} is a map, which no bounds are known for`);
  const { max = 1, label = field.name, plainBytes = 0 } = limit ?? {};
  const message = field.message ? compileBounds(field.message, limits) : null;
  const kind = kindOf(field);
  const own = { message: messageBytes, text: textHeaderBytes, packed: numberOf(field), varint: bigintBytes };
  return { kind, label, max, decodedBytes: own[kind] + plainBytes, message };
}

function kindOf(field: DescField): WireKind {
  if (field.message) return 'message';
  if (field.scalar === ScalarType.STRING) return 'text';
  if (field.enum || varints.has(field.scalar!)) return field.fieldKind === 'list' ? 'packed' : 'varint';
  throw new Error(`${field.name} is of a kind that no bounds are known for`);
}

const varints = new Set([ScalarType.UINT32, ScalarType.UINT64, ScalarType.INT64, ScalarType.BOOL]);

function numberOf(field: DescField): number {
  return field.scalar === ScalarType.UINT64 || field.scalar === ScalarType.INT64 ? bigintBytes : numberBytes;
}

/** A field as it lies in the bytes. */
export interface WireField {
  /** Undefined: the schema does not know it. */
  field: FieldBounds | undefined;
  /** Where its payload begins and where the next field does. */
  payload: number;
  end: number;
  /** Elements that it holds: of a packed column its numbers, else one. */
  elements: number;
}

/** Fields that the schema does not know, of one message: a newer sensor's, passed over. */
export const unknownFieldsMax = 1024;

/** Reads where the field at `at` ends and what it is. Decodes nothing. Throws `telemetry.malformed`. */
export function readField(bounds: MessageBounds, bytes: Uint8Array, at: number, end: number): WireField {
  const tag = readSmallVarint(bytes, at, end);
  const afterTag = varintEnd;
  const number = Math.floor(tag / 8);
  const wireType = tag % 8;
  if (number === 0) throw malformed('the body is no telemetry upload: a field has the number 0');
  const field = bounds.fields[number];
  if (wireType === 0) {
    if (field && field.kind !== 'varint' && field.kind !== 'packed') throw mismatch(field);
    return { field, payload: afterTag, end: skipVarint(bytes, afterTag, end), elements: 1 };
  }
  if (wireType === 2) {
    if (field?.kind === 'varint') throw mismatch(field);
    const length = readSmallVarint(bytes, afterTag, end);
    const payload = varintEnd;
    const fieldEnd = payload + length;
    if (fieldEnd > end) throw malformed('the body is no telemetry upload: it is cut short');
    const elements = field ? countElements(field, bytes, payload, fieldEnd) : 1;
    return { field, payload, end: fieldEnd, elements };
  }
  const fixed = wireType === 1 ? 8 : wireType === 5 ? 4 : null;
  // Groups nest without end; no message of ours has any.
  if (fixed === null || field) throw malformed(`the body is no telemetry upload: wire type ${wireType}`);
  if (afterTag + fixed > end) throw malformed('the body is no telemetry upload: it is cut short');
  return { field, payload: afterTag, end: afterTag + fixed, elements: 1 };
}

/** Bytes that a field takes when decoded. */
export function decodedBytesOf({ field, payload, end, elements }: WireField): number {
  if (!field) return 0;
  return field.decodedBytes * elements + (field.kind === 'text' ? 2 * (end - payload) : 0);
}

/** The error of a list with too many elements, or of a field that occurs again. */
export function tooMany(field: FieldBounds): Error {
  if (field.max === 1) return malformed(`${field.label} occurs twice`);
  return malformed(`${field.label} holds more than ${field.max} entries`);
}

function countElements(field: FieldBounds, bytes: Uint8Array, from: number, to: number): number {
  if (field.kind === 'text' && to - from > textBytesMax) {
    throw malformed(`a text of ${field.label} is longer than ${textBytesMax} bytes`);
  }
  if (field.kind !== 'packed') return 1;
  // A number takes at most ten bytes, so this bounds the count itself.
  if (to - from > field.max * 10) throw tooMany(field);
  let count = 0;
  for (let i = from; i < to; i += 1) if (bytes[i]! < 128) count += 1;
  return count;
}

function mismatch(field: FieldBounds): Error {
  return malformed(`the body is no telemetry upload: ${field.label} is of another type`);
}

/** Where the last varint that was read ends. A second result without an object for each field. */
let varintEnd = 0;

/** A varint below 2^32, as tags and lengths are; read like the decoder does, so that both see the same fields. */
function readSmallVarint(bytes: Uint8Array, at: number, end: number): number {
  let value = 0;
  let scale = 1;
  for (let i = at; i < end && i < at + 5; i += 1) {
    const byte = bytes[i]!;
    value += (byte & 127) * scale;
    if (byte < 128) {
      if (value > 0xffff_ffff) break;
      varintEnd = i + 1;
      return value;
    }
    scale *= 128;
  }
  throw malformed('the body is no telemetry upload: a length or a field number is not readable');
}

function skipVarint(bytes: Uint8Array, at: number, end: number): number {
  for (let i = at; i < end && i < at + 10; i += 1) if (bytes[i]! < 128) return i + 1;
  throw malformed('the body is no telemetry upload: a number is not readable');
}
