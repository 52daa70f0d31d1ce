import { type ByteSource, NotACaptureError, openBytes } from './byte-source.ts';

/**
 * Capture files: pcap and pcapng, compressed or not, read frame by frame. Loads little, because `sensor read` starts with
 * it.
 */
export { NotACaptureError } from './byte-source.ts';

// Reads capture files frame by frame: pcap and pcapng, either byte order, micro- or nanoseconds, several interfaces,
// compressed with gzip or Zstandard, or from standard input.
//
// `next` reads the following frame into the reader's fields, in a reused buffer of 256 KiB, larger only when a frame
// needs it. A truncated or damaged file gives the frames before the damage and a sentence in `problems`. Only a file
// that is not a capture throws.

/** No link has longer frames; a longer record is damaged. */
const recordBytesMax = 64 * 1024 * 1024;
/** Limit of a section: a damaged file may describe millions of interfaces, and each is kept. */
const interfacesMax = 65_536;
/** The last second of the year 9999, the last in RFC 3339. */
const secondsMax = 253_402_300_799;

interface CaptureInterface {
  linkType: number;
  snapLength: number;
  /** Time units per second, and the offset of timestamps in seconds. */
  unitsPerSecond: number;
  offsetSeconds: number;
}

/** Opens a capture file, or standard input for `-`. Throws `NotACaptureError`. */
export function openCaptureFile(path: string): CaptureFile {
  const input = new FileWindow(openBytes(path));
  try {
    if (!input.has(4)) {
      const why = `${path} is not a capture file: it is ${input.has(1) ? 'too short' : 'empty'}.`;
      throw new NotACaptureError(input.source.problem ?? why);
    }
    const magic = input.uint32(0, false);
    if (magic === 0x0a0d0d0a) return new PcapngFile(input, path);
    return new PcapFile(input, path, magic);
  } catch (error) {
    input.close();
    throw error;
  }
}

export abstract class CaptureFile {
  /** The current frame. */
  bytes: Uint8Array = new Uint8Array(0);
  offset = 0;
  capturedLength = 0;
  wireLength = 0;
  seconds = 0;
  nanoseconds = 0;
  linkType = 0;
  /** Link types of the interfaces so far, in order. */
  readonly linkTypes: number[] = [];
  /** Problems while reading, as sentences. */
  readonly problems: string[] = [];
  protected readonly input: FileWindow;
  protected frames = 0;
  #boundedTimes = 0;
  #borrowedTimes = 0;

  constructor(input: FileWindow) {
    this.input = input;
  }

  /** Bytes of the capture, estimated for a compressed one, 0 when unknown. */
  get size(): number {
    return this.input.source.fileBytes * this.input.source.growth;
  }

  /** Part of the file that was read, 0 to 1; null when its size is unknown. */
  get progress(): number | null {
    const { fileBytes, taken } = this.input.source;
    return fileBytes > 0 ? Math.min(1, taken / fileBytes) : null;
  }

  /** Reads the next frame. Returns false at the end. */
  abstract next(): boolean;

  close(): void {
    this.input.close();
  }

  /** Sets the fields to the frame that starts `headerLength` bytes ahead. */
  protected take(headerLength: number, captured: number, wire: number): true {
    this.bytes = this.input.bytes;
    this.offset = this.input.at + headerLength;
    this.capturedLength = captured;
    this.wireLength = Math.max(captured, wire);
    this.frames += 1;
    return true;
  }

  /** Sets the frame's time, limited to the years 1970 to 9999 and to valid nanoseconds. */
  protected setTime(seconds: number, nanoseconds: number): void {
    this.seconds = seconds;
    this.nanoseconds = nanoseconds;
    if (seconds >= 0 && seconds <= secondsMax && nanoseconds < 1e9) return;
    this.#boundedTimes += 1;
    this.seconds = seconds >= 0 ? Math.min(seconds, secondsMax) : 0;
    this.nanoseconds = Math.min(nanoseconds, 999_999_999);
  }

  /** The frame has no time: it keeps that of the one before, if any had one. */
  protected borrowTime(): void {
    if (this.seconds !== 0 || this.nanoseconds !== 0) this.#borrowedTimes += 1;
  }

  /** Adds the problems of the source and of times at its end. */
  protected noteSource(): void {
    const { problem } = this.input.source;
    if (problem && !this.problems.includes(problem)) this.problems.push(problem);
    if (this.#boundedTimes > 0) {
      this.problems.push(
        `${this.#boundedTimes} packets have a time outside the years 1970 to 9999 or a fraction of more than a second: the nearest valid time is used.`,
      );
      this.#boundedTimes = 0;
    }
    if (this.#borrowedTimes > 0) {
      this.problems.push(`${this.#borrowedTimes} packets have no time: that of the packet before is used.`);
      this.#borrowedTimes = 0;
    }
  }

  protected stop(problem: string): false {
    this.noteSource();
    this.problems.push(`${problem} after ${this.frames} packets; the packets before were read.`);
    this.input.close();
    this.next = () => false;
    return false;
  }
}

class PcapFile extends CaptureFile {
  readonly #isLittle: boolean;
  readonly #isNano: boolean;
  readonly #headerLength: number;

  constructor(input: FileWindow, path: string, magic: number) {
    super(input);
    const swapped = magic === 0xd4c3b2a1 || magic === 0x4d3cb2a1 || magic === 0x34cdb2a1;
    const plain = magic === 0xa1b2c3d4 || magic === 0xa1b23c4d || magic === 0xa1b2cd34;
    if (!swapped && !plain) throw new NotACaptureError(notACapture(path));
    if (!input.has(24)) throw new NotACaptureError(`${path} is not a capture file: its header is truncated.`);
    this.#isLittle = swapped;
    this.#isNano = magic === 0x4d3cb2a1 || magic === 0xa1b23c4d;
    // A modified format has eight more bytes before each packet.
    this.#headerLength = magic === 0x34cdb2a1 || magic === 0xa1b2cd34 ? 24 : 16;
    // The upper bits describe the frame check sequence, not the link.
    this.linkType = input.uint32(20, this.#isLittle) & 0xffff;
    this.linkTypes.push(this.linkType);
    input.at += 24;
  }

  next(): boolean {
    const { input } = this;
    const headerLength = this.#headerLength;
    if (this.frames > 0) input.at += headerLength + this.capturedLength;
    const { at, limit } = input;
    // The common case: the whole record is in the window and valid.
    if (at + headerLength <= limit) {
      const { view } = input;
      const little = this.#isLittle;
      const captured = view.getUint32(at + 8, little);
      const fraction = view.getUint32(at + 4, little);
      const nanoseconds = this.#isNano ? fraction : fraction * 1000;
      if (captured <= limit - at - headerLength && captured <= recordBytesMax && nanoseconds < 1e9) {
        const wire = view.getUint32(at + 12, little);
        this.bytes = input.bytes;
        this.offset = at + headerLength;
        this.capturedLength = captured;
        this.wireLength = captured < wire ? wire : captured;
        this.seconds = view.getUint32(at, little);
        this.nanoseconds = nanoseconds;
        this.frames += 1;
        return true;
      }
    }
    return this.#nextAtEdge();
  }

  /** The same at the end of the window and for damaged records. */
  #nextAtEdge(): boolean {
    const { input } = this;
    const headerLength = this.#headerLength;
    if (!input.has(headerLength)) {
      if (input.isEmpty()) return this.#end();
      return this.stop('The file ends inside a packet header');
    }
    const little = this.#isLittle;
    const captured = input.uint32(8, little);
    if (captured > recordBytesMax) return this.stop(`The file is damaged: a packet of ${captured} bytes`);
    if (!input.has(headerLength + captured)) return this.stop('The file ends inside a packet');
    const fraction = input.uint32(4, little);
    this.setTime(input.uint32(0, little), this.#isNano ? fraction : fraction * 1000);
    return this.take(headerLength, captured, input.uint32(12, little));
  }

  #end(): false {
    this.noteSource();
    this.input.close();
    this.next = () => false;
    return false;
  }
}

function notACapture(path: string): string {
  return `${path} is not a capture file (neither pcap nor pcapng).`;
}

const block = { interface: 1, obsolete: 2, simple: 3, enhanced: 6, section: 0x0a0d0d0a } as const;

class PcapngFile extends CaptureFile {
  #isLittle = true;
  #interfaces: CaptureInterface[] = [];
  #blockLength = 0;

  constructor(input: FileWindow, path: string) {
    super(input);
    if (!input.has(12)) throw new NotACaptureError(`${path} is not a capture file: its header is truncated.`);
    const order = input.uint32(8, true);
    if (order !== 0x1a2b3c4d && order !== 0x4d3c2b1a) throw new NotACaptureError(notACapture(path));
  }

  next(): boolean {
    const { input } = this;
    for (;;) {
      if (!input.skip(this.#blockLength)) return this.stop('The file ends inside a block');
      this.#blockLength = 0;
      if (input.isEmpty()) {
        this.noteSource();
        return false;
      }
      if (!input.has(12)) return this.stop('The file ends inside a block header');
      const isSection = input.uint32(0, true) === block.section;
      if (isSection) this.#isLittle = input.uint32(8, true) === 0x1a2b3c4d;
      const type = isSection ? block.section : input.uint32(0, this.#isLittle);
      const length = input.uint32(4, this.#isLittle);
      if (length < 12 || length > recordBytesMax)
        return this.stop(`The file is damaged: a block of ${length} bytes`);
      this.#blockLength = (length + 3) & ~3;
      if (isSection) this.#interfaces = [];
      else if (type === block.interface && this.#interfaces.length >= interfacesMax)
        return this.stop(`The file is damaged: more than ${interfacesMax} interfaces`);
      else if (type === block.interface && !this.#readInterface(length))
        return this.stop('An interface block is truncated');
      else if (type === block.enhanced || type === block.obsolete) {
        const found = this.#readPacket(type, length);
        if (found !== null) return found;
      } else if (type === block.simple) return this.#readSimplePacket(length);
    }
  }

  #readInterface(length: number): boolean {
    const { input } = this;
    if (length < 20 || !input.has(length)) return false;
    const little = this.#isLittle;
    const added = {
      linkType: input.uint16(8, little),
      snapLength: input.uint32(12, little),
      unitsPerSecond: 1e6,
      offsetSeconds: 0,
    };
    this.#readOptions(length, added);
    this.#interfaces.push(added);
    // Sections repeat their interfaces, and the number of sections is unlimited.
    if (this.linkTypes.length < interfacesMax) this.linkTypes.push(added.linkType);
    return true;
  }

  #readOptions(length: number, target: CaptureInterface): void {
    const { input } = this;
    const little = this.#isLittle;
    let at = 16;
    while (at + 4 <= length - 4) {
      const code = input.uint16(at, little);
      const size = input.uint16(at + 2, little);
      if (code === 0 || at + 4 + size > length - 4) return;
      if (code === 9 && size === 1) {
        const resolution = input.bytes[input.at + at + 4]!;
        target.unitsPerSecond = (resolution & 0x80) !== 0 ? 2 ** (resolution & 0x7f) : 10 ** resolution;
      } else if (code === 14 && size === 8) {
        const high = input.uint32(at + 4 + (little ? 4 : 0), little) | 0;
        target.offsetSeconds = high * 4_294_967_296 + input.uint32(at + 4 + (little ? 0 : 4), little);
      }
      at += 4 + ((size + 3) & ~3);
    }
  }

  /**
   * Returns true for a packet, false when the file can not be read any further, null to continue with the next block.
   */
  #readPacket(type: number, length: number): boolean | null {
    const { input } = this;
    if (length < 32) return this.stop('A packet block is truncated');
    if (!input.has(length)) return this.stop('The file ends inside a packet');
    const little = this.#isLittle;
    const index = type === block.enhanced ? input.uint32(8, little) : input.uint16(8, little);
    const from = this.#interfaces[index];
    const captured = input.uint32(20, little);
    if (!from) return this.stop(`A packet names an interface (${index}) that was not described`);
    if (captured > length - 32) return this.stop('A packet is longer than its block');
    this.#setTime(from, input.uint32(12, little), input.uint32(16, little));
    this.linkType = from.linkType;
    return this.take(28, captured, input.uint32(24, little));
  }

  #readSimplePacket(length: number): boolean {
    const { input } = this;
    const from = this.#interfaces[0];
    if (length < 16 || !from) return this.stop('A packet block is truncated or has no interface');
    if (!input.has(length)) return this.stop('The file ends inside a packet');
    const wire = input.uint32(8, this.#isLittle);
    const limit = from.snapLength === 0 ? wire : Math.min(wire, from.snapLength);
    this.linkType = from.linkType;
    this.borrowTime();
    return this.take(12, Math.min(limit, length - 16), wire);
  }

  #setTime(from: CaptureInterface, high: number, low: number): void {
    const units = high * 4_294_967_296 + low;
    const seconds = Math.floor(units / from.unitsPerSecond);
    const fraction = (units - seconds * from.unitsPerSecond) / from.unitsPerSecond;
    this.setTime(
      seconds + from.offsetSeconds,
      Math.min(999_999_999, Math.max(0, Math.round(fraction * 1e9))),
    );
  }
}

const pieceBytes = 262_144;

/** A window into the file: `at` moves forward, and `has(n)` loads n bytes from there. */
class FileWindow {
  bytes = new Uint8Array(pieceBytes);
  view = new DataView(this.bytes.buffer);
  at = 0;
  readonly source: ByteSource;
  /** Index after the file's last byte in the window. */
  limit = 0;
  #isAtEnd = false;
  #isClosed = false;

  constructor(source: ByteSource) {
    this.source = source;
  }

  has(count: number): boolean {
    if (this.limit - this.at >= count) return true;
    if (this.#isAtEnd) return false;
    this.#fill(count);
    return this.limit - this.at >= count;
  }

  /** True when every byte was consumed. */
  isEmpty(): boolean {
    return !this.has(1);
  }

  uint16(offset: number, isLittle: boolean): number {
    return this.view.getUint16(this.at + offset, isLittle);
  }

  uint32(offset: number, isLittle: boolean): number {
    return this.view.getUint32(this.at + offset, isLittle);
  }

  /** Skips `count` bytes, in the buffer or not. Returns false when the file ends before. */
  skip(count: number): boolean {
    let left = count;
    while (left > 0) {
      const step = Math.min(left, pieceBytes);
      if (!this.has(step)) return false;
      this.at += step;
      left -= step;
    }
    return true;
  }

  close(): void {
    if (!this.#isClosed) this.source.close();
    this.#isClosed = true;
    this.#isAtEnd = true;
  }

  #fill(count: number): void {
    const held = this.limit - this.at;
    if (count > this.bytes.length) {
      const larger = new Uint8Array(Math.ceil(count / pieceBytes) * pieceBytes);
      larger.set(this.bytes.subarray(this.at, this.limit));
      this.bytes = larger;
      this.view = new DataView(larger.buffer);
    } else this.bytes.copyWithin(0, this.at, this.limit);
    this.at = 0;
    this.limit = held;
    while (this.limit < count) {
      const got = this.source.read(this.bytes, this.limit, this.bytes.length - this.limit);
      if (got === 0) {
        this.#isAtEnd = true;
        return;
      }
      this.limit += got;
    }
  }
}
