import {
  type EvidencePacket,
  evidenceBytesMax,
  evidenceHeaderBytes,
  evidencePacketsMax,
  evidenceRecordBytes,
  evidenceSnapBytes,
} from '#contracts/sensor-api/evidence.ts';
import { decodeFrame, Packet, Verdict } from '#sensor/capture/index.ts';

/**
 * Records the first packets of attacks in a capture thread: those to or from one address or prefix.
 *
 * Guarantees: a thread records at most eight attacks at once, each in a buffer of its own (at most 532 KiB) that it hands over
 * when it is full or no longer wanted. While nothing is recorded, the packet path does not call it.
 *
 * The main thread says what is wanted, and puts together what the threads give (`sensor/evidence`).
 */

// The recordings of one capture thread. Packets are kept as records of a pcap file, cut and with the VLAN tag that the kernel
// took off. A frame is decoded here once more, which costs only while something is recorded.

/** At once, in one thread. */
export const recordingsMax = 8;
const bufferBytes = Math.min(
  evidencePacketsMax * (evidenceRecordBytes + evidenceSnapBytes),
  evidenceBytesMax - evidenceHeaderBytes,
);
const ethernet = 1;
const macBytes = 12;
const tagBytes = 4;

/** An attack whose packets are wanted. */
export interface WantedRecording {
  /** Of the incident. */
  id: string;
  direction: 'inbound' | 'outbound';
  /** Of the target: 4 or 6. */
  version: number;
  words: readonly [number, number, number, number];
  /** Bits of its prefix, of 128; an IPv4 address is in the last 32 of them. */
  prefixBits: number;
}

/** What one thread recorded of one attack; given once for each wanted recording. */
export interface RecordedPackets {
  id: string;
  linkType: number;
  packets: number;
  /** Records of a pcap file. */
  records: Uint8Array;
}

class Recording {
  readonly wanted: WantedRecording;
  readonly #buffer = new Uint8Array(bufferBytes);
  readonly #view = new DataView(this.#buffer.buffer);
  readonly #masks: Int32Array;
  packets = 0;
  #at = 0;

  constructor(wanted: WantedRecording) {
    this.wanted = wanted;
    this.#masks = Int32Array.from([0, 1, 2, 3], (word) => {
      const bits = Math.min(32, Math.max(0, wanted.prefixBits - word * 32));
      return bits === 0 ? 0 : -1 << (32 - bits);
    });
  }

  get isFull(): boolean {
    return (
      this.packets >= evidencePacketsMax || this.#at + evidenceRecordBytes + evidenceSnapBytes > bufferBytes
    );
  }

  matches(p: Packet): boolean {
    const { direction, version, words } = this.wanted;
    if (p.version !== version) return false;
    const [m0, m1, m2, m3] = this.#masks as unknown as [number, number, number, number];
    return direction === 'inbound'
      ? ((p.target0 ^ words[0]) & m0) === 0 &&
          ((p.target1 ^ words[1]) & m1) === 0 &&
          ((p.target2 ^ words[2]) & m2) === 0 &&
          ((p.target3 ^ words[3]) & m3) === 0
      : ((p.source0 ^ words[0]) & m0) === 0 &&
          ((p.source1 ^ words[1]) & m1) === 0 &&
          ((p.source2 ^ words[2]) & m2) === 0 &&
          ((p.source3 ^ words[3]) & m3) === 0;
  }

  add(frame: Uint8Array, wireLength: number, tag: number, seconds: number, nanoseconds: number): void {
    const at = this.#at + evidenceRecordBytes;
    const hasTag = tag >= 0 && frame.length >= macBytes;
    const kept = Math.min(evidenceSnapBytes, frame.length + (hasTag ? tagBytes : 0));
    if (hasTag) {
      this.#buffer.set(frame.subarray(0, macBytes), at);
      this.#view.setUint16(at + macBytes, 0x8100);
      this.#view.setUint16(at + macBytes + 2, tag);
      this.#buffer.set(frame.subarray(macBytes, kept - tagBytes), at + macBytes + tagBytes);
    } else this.#buffer.set(frame.subarray(0, kept), at);
    this.#view.setUint32(this.#at, seconds, true);
    this.#view.setUint32(this.#at + 4, nanoseconds, true);
    this.#view.setUint32(this.#at + 8, kept, true);
    this.#view.setUint32(this.#at + 12, Math.max(kept, wireLength + (hasTag ? tagBytes : 0)), true);
    this.#at = at + kept;
    this.packets += 1;
  }

  give(linkType: number): RecordedPackets {
    const records = this.#buffer.slice(0, this.#at);
    return { id: this.wanted.id, linkType, packets: this.packets, records };
  }
}

export class PacketRecorder {
  readonly #linkType: number;
  readonly #packet = new Packet();
  #active: Recording[] = [];
  /** Handed over, and still wanted. */
  #given = new Set<string>();
  #full: RecordedPackets[] = [];

  constructor(linkType: number) {
    this.#linkType = linkType;
  }

  /** True while it wants frames. */
  get isRecording(): boolean {
    return this.#active.length > 0;
  }

  /** Records these from now on. What is not wanted any more is handed over. */
  follow(wanted: readonly WantedRecording[]): void {
    const ids = new Set(wanted.map(({ id }) => id));
    this.#giveWhere((one) => !ids.has(one.wanted.id));
    this.#given = new Set([...this.#given].filter((id) => ids.has(id)));
    const held = new Set([...this.#given, ...this.#active.map((one) => one.wanted.id)]);
    for (const one of wanted)
      if (!held.has(one.id) && this.#active.length < recordingsMax) this.#active.push(new Recording(one));
  }

  /** Adds a frame to the recordings that it belongs to. */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    seconds: number,
    nanoseconds: number,
    vlanTci: number,
  ): void {
    if (this.#active.length === 0) return;
    const p = this.#packet;
    p.attach(bytes);
    p.end = Math.min(offset + capturedLength, bytes.length);
    p.wireEnd = Math.max(offset + wireLength, p.end);
    if (decodeFrame(p, this.#linkType, offset) !== Verdict.ip) return;
    const tag = this.#linkType === ethernet ? vlanTci : -1;
    let isFull = false;
    for (const one of this.#active) {
      if (!one.matches(p)) continue;
      const frame = bytes.subarray(offset, Math.min(p.end, offset + evidenceSnapBytes));
      one.add(frame, wireLength, tag, seconds, nanoseconds);
      isFull ||= one.isFull;
    }
    if (isFull) this.#giveWhere((one) => one.isFull);
  }

  /** What was handed over since the last call. */
  take(): RecordedPackets[] {
    const taken = this.#full;
    this.#full = [];
    return taken;
  }

  /** Hands everything over: no more frames come. */
  end(): void {
    this.#giveWhere(() => true);
  }

  #giveWhere(isDone: (one: Recording) => boolean): void {
    if (!this.#active.some(isDone)) return;
    for (const one of this.#active.filter(isDone)) {
      this.#full.push(one.give(this.#linkType));
      this.#given.add(one.wanted.id);
    }
    this.#active = this.#active.filter((one) => !isDone(one));
  }
}

/** The packets of records that `PacketRecorder` made. */
export function readRecords(records: Uint8Array): EvidencePacket[] {
  const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
  const packets: EvidencePacket[] = [];
  for (let at = 0; at + evidenceRecordBytes <= records.length; ) {
    const length = view.getUint32(at + 8, true);
    const from = at + evidenceRecordBytes;
    packets.push({
      seconds: view.getUint32(at, true),
      nanoseconds: view.getUint32(at + 4, true),
      wireLength: view.getUint32(at + 12, true),
      bytes: records.subarray(from, from + length),
    });
    at = from + length;
  }
  return packets;
}
