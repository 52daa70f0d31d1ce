/**
 * Writes packets from a template: fields that vary are set, checksums follow.
 *
 * A template's varying fields are zero, so a checksum is the template's sum plus the fields' values. All offsets of
 * fields are even, as the sum goes by 16-bit words.
 */
import { parseAddress } from '#common/ip/index.ts';
import { macs } from '../world/networks.ts';

export interface TemplateOptions {
  /** Where packets go; also decides the family. */
  target: string;
  /** IPv4 protocol or IPv6 next header. */
  protocol: number;
  /** All bytes after the IP header. */
  payload: Uint8Array;
  /** Where in the payload the checksum is, and from where on it sums; null: the protocol has none. */
  checksum: {
    at: number;
    from: number;
    /** Protocol and length of the whole datagram; null: without pseudo header. */
    pseudo: { protocol: number; length: number } | null;
  } | null;
  /** IPv4's flags and fragment offset. */
  fragmentBits?: number;
}

const ethernetBytes = 14;
const timeToLive = 57;

export class PacketWriter {
  readonly frameBytes: number;
  readonly #template: Uint8Array;
  readonly #isIpv4: boolean;
  readonly #payloadAt: number;
  readonly #checksum: TemplateOptions['checksum'];
  readonly #headerSum: number;
  readonly #payloadSum: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  #ipSum = 0;
  #sum = 0;

  constructor(options: TemplateOptions) {
    const target = parseAddress(options.target)!;
    this.#isIpv4 = target.length === 4;
    this.#payloadAt = ethernetBytes + (this.#isIpv4 ? 20 : 40);
    this.#checksum = options.checksum;
    this.#template = buildTemplate(options, target);
    this.frameBytes = this.#template.length;
    this.#headerSum = this.#isIpv4 ? sumWords(this.#template, ethernetBytes, ethernetBytes + 20) : 0;
    this.#payloadSum = options.checksum ? sumOf(options.payload, options.checksum, target) : 0;
  }

  /** Starts a packet at `at`. */
  begin(bytes: Uint8Array, at: number): void {
    bytes.set(this.#template, at);
    this.#bytes = bytes;
    this.#at = at;
    this.#ipSum = this.#headerSum;
    this.#sum = this.#payloadSum;
  }

  /** Sets the source: two words of IPv4 or eight of IPv6. */
  setSource(words: Uint16Array): void {
    const at = this.#at + ethernetBytes + (this.#isIpv4 ? 12 : 8);
    for (let i = 0; i < words.length; i += 1) {
      this.#write(at + 2 * i, words[i]!);
      if (this.#checksum?.pseudo) this.#sum += words[i]!;
      this.#ipSum += words[i]!;
    }
  }

  /** Sets IPv4's identification; IPv6 has none here. */
  setIdentification(value: number): void {
    if (!this.#isIpv4) return;
    this.#write(this.#at + ethernetBytes + 4, value);
    this.#ipSum += value & 0xffff;
  }

  /** Sets a word of the payload that the checksum covers. */
  setWord(offset: number, value: number): void {
    this.#write(this.#at + this.#payloadAt + offset, value);
    this.#sum += value & 0xffff;
  }

  /** Sets a word of the payload outside the checksum. */
  setUnsummed(offset: number, value: number): void {
    this.#write(this.#at + this.#payloadAt + offset, value);
  }

  /** Writes the checksums; returns the frame's length. */
  end(): number {
    if (this.#isIpv4) this.#write(this.#at + ethernetBytes + 10, ~fold(this.#ipSum));
    // Zero would mean "no checksum" in UDP; both spellings of zero are the same number in this arithmetic.
    if (this.#checksum)
      this.#write(this.#at + this.#payloadAt + this.#checksum.at, ~fold(this.#sum) & 0xffff || 0xffff);
    return this.frameBytes;
  }

  #write(at: number, value: number): void {
    this.#bytes[at] = (value >>> 8) & 255;
    this.#bytes[at + 1] = value & 255;
  }
}

function buildTemplate(options: TemplateOptions, target: Uint8Array): Uint8Array {
  const isIpv4 = target.length === 4;
  const header = Buffer.alloc(isIpv4 ? 20 : 40);
  if (isIpv4) {
    header[0] = 0x45;
    header.writeUInt16BE(20 + options.payload.length, 2);
    header.writeUInt16BE(options.fragmentBits ?? 0, 6);
    header[8] = timeToLive;
    header[9] = options.protocol;
    header.set(target, 16);
  } else {
    header[0] = 0x60;
    header.writeUInt16BE(options.payload.length, 4);
    header[6] = options.protocol;
    header[7] = timeToLive;
    header.set(target, 24);
  }
  const mac = (text: string) => Buffer.from(text.replaceAll(':', ''), 'hex');
  const type = Buffer.from(isIpv4 ? '0800' : '86dd', 'hex');
  return Buffer.concat([mac(macs.uplink), mac(macs.internet), type, header, options.payload]);
}

/** The sum of payload and pseudo header, without the source. */
function sumOf(payload: Uint8Array, checksum: NonNullable<TemplateOptions['checksum']>, target: Uint8Array) {
  const sum = sumWords(payload, checksum.from, payload.length);
  if (checksum.pseudo === null) return sum;
  return sum + sumWords(target, 0, target.length) + checksum.pseudo.protocol + checksum.pseudo.length;
}

/** The sum of 16-bit words; an odd last byte counts as the high half of one. */
export function sumWords(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i += 2) sum += (bytes[i]! << 8) | (i + 1 < to ? bytes[i + 1]! : 0);
  return sum;
}

/** Adds the carries: the sum of ones' complement arithmetic. */
export function fold(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x1_0000);
  return folded;
}
