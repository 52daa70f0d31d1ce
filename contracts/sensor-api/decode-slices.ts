/**
 * Decodes a protobuf message of any size in slices of bounded work.
 *
 * First the bytes are walked and every bound is checked (`wire-bounds.ts`): nothing is decoded of a message that holds
 * too much. Then it is decoded in ranges of whole fields, each of at most `sliceRowsMax` rows and `sliceBytesMax` bytes,
 * which merge into one message. Between two slices the caller may give way to other work. A row is a field that is
 * walked, an element that is decoded, or a value that is made of one.
 */
import { create, type DescMessage, type MessageShape, mergeFromBinary } from '@bufbuild/protobuf';
import { CodedError, describeError } from '#common/errors/index.ts';
import { malformed } from './telemetry-values.ts';
import {
  type BoundsOf,
  decodedBytesOf,
  type MessageBounds,
  readField,
  tooMany,
  unknownFieldsMax,
  type WireField,
} from './wire-bounds.ts';

/** The most rows and bytes of one slice. */
export const sliceRowsMax = 16_384;
export const sliceBytesMax = 256 * 1024;
/** What an upload may take in memory when it is decoded. */
export const decodedBytesMax = 64 * 1024 * 1024;
/** Messages up to this many bytes are walked at once. */
const smallBytes = 4096;

/** The work of one slice. */
export interface SliceWork {
  rows: number;
  bytes: number;
}

/** Work that gives way between slices. */
export type Sliced<T> = Generator<SliceWork, T, void>;

/** The work since the last pause. */
export class Slice {
  rows = 0;
  bytes = 0;
  /** What the upload takes when decoded, known after its bytes were walked. */
  decodedBytes = 0;

  /** True when a unit of so much work has to wait for the next slice. */
  isFullFor(rows: number, bytes = 0): boolean {
    return this.rows + rows > sliceRowsMax || this.bytes + bytes > sliceBytesMax;
  }

  add(rows: number, bytes = 0): void {
    this.rows += rows;
    this.bytes += bytes;
  }

  /** Begins the next slice; returns what the ended one did. */
  end(): SliceWork {
    const { rows, bytes } = this;
    this.rows = 0;
    this.bytes = 0;
    return { rows, bytes };
  }
}

/** Does sliced work in one go, for callers with nothing else to do. */
export function runAtOnce<T>(work: (slice: Slice) => Sliced<T>): T {
  const steps = work(new Slice());
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

export interface SlicedRun {
  /** Lets other work of the process run. */
  pause(): Promise<void>;
  /** Told of each slice as it ends. */
  onSlice?: ((work: SliceWork) => void) | undefined;
}

/** Does sliced work with a pause after each slice but the last. */
export async function runInSlices<T>(work: (slice: Slice) => Sliced<T>, run: SlicedRun): Promise<T> {
  const slice = new Slice();
  const steps = work(slice);
  try {
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
      run.onSlice?.(step.value);
      await run.pause();
    }
  } finally {
    run.onSlice?.(slice.end());
  }
}

/** Decodes a message within its bounds. Throws `telemetry.malformed`, and `telemetry.too_large` above `decodedBytesMax`. */
export function* decodeMessage<Desc extends DescMessage>(
  bounds: BoundsOf<Desc>,
  bytes: Uint8Array,
  slice: Slice,
): Sliced<MessageShape<Desc>> {
  slice.decodedBytes = 0;
  const plan = yield* walkLarge(bounds, bytes, 0, bytes.length, slice);
  return (yield* readPlan(plan, bytes, slice)) as MessageShape<Desc>;
}

/** True when a message of these bytes may be decoded. */
export function isWithinBounds(bounds: MessageBounds, bytes: Uint8Array): boolean {
  try {
    runAtOnce((slice) => walkLarge(bounds, bytes, 0, bytes.length, slice));
    return true;
  } catch {
    return false;
  }
}

/** A message as ranges of whole fields, and the large messages in it. */
interface Plan {
  bounds: MessageBounds;
  parts: (Range | { number: number; plan: Plan })[];
  rows: number;
}
interface Range {
  from: number;
  to: number;
  rows: number;
}

/** Walks a message of any size and plans the ranges in which it is decoded. */
function* walkLarge(
  bounds: MessageBounds,
  bytes: Uint8Array,
  from: number,
  to: number,
  slice: Slice,
): Sliced<Plan> {
  const counts = new Uint32Array(bounds.fields.length + 1);
  const plan: Plan = { bounds, parts: [], rows: 0 };
  let range: Range = { from, to: from, rows: 0 };
  for (let at = from; at < to; ) {
    const found = readField(bounds, bytes, at, to);
    count(bounds, counts, found, bytes, at);
    const { field, payload, end } = found;
    let rows = found.elements;
    note(slice, decodedBytesOf(found));
    if (!field) {
      // Passed over, however long it is.
      if (slice.isFullFor(1)) yield slice.end();
      slice.add(1);
      if (range.to > range.from) plan.parts.push(range);
      range = { from: end, to: end, rows: 0 };
      at = end;
      continue;
    }
    if (field.message && end - payload > smallBytes) {
      if (slice.isFullFor(1)) yield slice.end();
      slice.add(1);
      const child = yield* walkLarge(field.message, bytes, payload, end, slice);
      rows += child.rows;
      if (child.rows > sliceRowsMax / 4 || end - payload > sliceBytesMax / 4) {
        if (range.to > range.from) plan.parts.push(range);
        plan.parts.push({ number: bounds.fields.indexOf(field), plan: child });
        plan.rows += rows;
        range = { from: end, to: end, rows: 0 };
        at = end;
        continue;
      }
    } else {
      const size = end - at;
      if (slice.isFullFor(size < smallBytes ? size : found.elements, size)) yield slice.end();
      slice.add(1, size);
      if (field.message) {
        const walked = walkSmall(field.message, bytes, payload, end, slice);
        slice.add(walked.fields);
        rows += walked.rows;
      }
    }
    if (range.rows + rows > sliceRowsMax || end - range.from > sliceBytesMax) {
      plan.parts.push(range);
      range = { from: at, to: at, rows: 0 };
    }
    range.to = end;
    range.rows += rows;
    plan.rows += rows;
    at = end;
  }
  if (range.to > range.from) plan.parts.push(range);
  return plan;
}

/** Walks a small message at once. */
function walkSmall(
  bounds: MessageBounds,
  bytes: Uint8Array,
  from: number,
  to: number,
  slice: Slice,
): { rows: number; fields: number } {
  const counts = new Uint32Array(bounds.fields.length + 1);
  const walked = { rows: 0, fields: 0 };
  let decoded = 0;
  for (let at = from; at < to; ) {
    const found = readField(bounds, bytes, at, to);
    count(bounds, counts, found, bytes, at);
    decoded += decodedBytesOf(found);
    walked.rows += found.elements;
    walked.fields += 1;
    if (found.field?.message) {
      const inner = walkSmall(found.field.message, bytes, found.payload, found.end, slice);
      walked.rows += inner.rows;
      walked.fields += inner.fields;
    }
    at = found.end;
  }
  note(slice, decoded);
  return walked;
}

/** Counts a field towards its limit. */
function count(
  bounds: MessageBounds,
  counts: Uint32Array,
  { field, elements }: WireField,
  bytes: Uint8Array,
  at: number,
): void {
  if (!field) {
    counts[0]! += 1;
    if (counts[0]! > unknownFieldsMax)
      throw malformed(`a message holds more than ${unknownFieldsMax} unknown fields`);
    return;
  }
  // The tag of a known field fits two bytes.
  const first = bytes[at]!;
  const number = first < 128 ? first >> 3 : bounds.fields.indexOf(field);
  counts[number]! += elements;
  if (counts[number]! > field.max) throw tooMany(field);
}

function note(slice: Slice, decodedBytes: number): void {
  slice.decodedBytes += decodedBytes;
  if (slice.decodedBytes <= decodedBytesMax) return;
  throw new CodedError(
    'telemetry.too_large',
    `An upload must not take more than ${decodedBytesMax} bytes when it is decoded. Send fewer rows in one upload.`,
  );
}

/** The message of a plan. */
function* readPlan(plan: Plan, bytes: Uint8Array, slice: Slice): Sliced<MessageShape<DescMessage>> {
  const { schema } = plan.bounds;
  const message = create(schema);
  for (const part of plan.parts) {
    if ('plan' in part) {
      const child = yield* readPlan(part.plan, bytes, slice);
      attach(message, schema, part.number, child);
      continue;
    }
    const size = part.to - part.from;
    if (slice.isFullFor(part.rows, size)) yield slice.end();
    slice.add(part.rows, size);
    try {
      mergeFromBinary(schema, message, bytes.subarray(part.from, part.to), { readUnknownFields: false });
    } catch (error) {
      throw malformed(`the body is no telemetry upload: ${describeError(error)}`);
    }
  }
  return message;
}

function attach(
  message: MessageShape<DescMessage>,
  schema: DescMessage,
  number: number,
  child: MessageShape<DescMessage>,
): void {
  const field = schema.fields.find((one) => one.number === number)!;
  const fields = message as unknown as Record<string, unknown>;
  if (field.fieldKind === 'list') (fields[field.localName] as unknown[]).push(child);
  else fields[field.localName] = child;
}
