/**
 * Remembers in fixed memory which ends of which flows have sent, for 20 to 40 seconds of capture time.
 *
 * A byte for each keyed hash of a flow: for each end whether it sent, and whether it answered an opening, now and in the 20
 * seconds before. So a packet reads and writes one byte. A one-way packet looks two-way with the probability of a set bit,
 * so the caller keeps floods out; a two-way packet never looks one-way because of others.
 */
import { hashPacket, type Packet, sourceIsLower } from '#sensor/capture/index.ts';

/** Bytes, a power of two: 2 MiB. */
const places = 1 << 21;
const secondsPerTurn = 20;

/** Bits of one end; those of the other end are four higher. The second bit of each pair is that of the odd turns. */
const Mark = { sent: 1, answered: 4 } as const;
const bothTurns = 3;

export class FlowMemory {
  readonly #marks = new Uint8Array(places);
  /** The same bytes, to clear them. */
  readonly #words = new Int32Array(this.#marks.buffer);
  readonly #key: readonly [number, number];
  #turnedAt = 0;
  /** 0 or 1: which bit of each pair is set now. */
  #odd = 0;
  #place = 0;
  /** 0 or 4: the bits of the end that sent the packet. */
  #end = 0;

  constructor(key: readonly [number, number]) {
    this.#key = key;
  }

  /** Looks at a packet's flow; the other methods are about it. */
  find(p: Packet): void {
    const isLower = sourceIsLower(p);
    const ports = isLower ? (p.sourcePort << 16) | p.targetPort : (p.targetPort << 16) | p.sourcePort;
    const meta = p.protocol | (p.version << 8);
    this.#place = hashPacket(p, isLower, ports, meta, this.#key[0], this.#key[1]) & (places - 1);
    this.#end = isLower ? 0 : 4;
  }

  /** True when this end has sent. */
  hasSent(): boolean {
    return this.#has(Mark.sent, this.#end);
  }

  /** True when the other end has sent. */
  hasOtherSent(): boolean {
    return this.#has(Mark.sent, 4 - this.#end);
  }

  /** True when the other end has answered an opening. */
  hasOtherAnswered(): boolean {
    return this.#has(Mark.answered, 4 - this.#end);
  }

  noteSent(): void {
    this.#set(Mark.sent);
  }

  noteAnswered(): void {
    this.#set(Mark.answered);
  }

  /** Forgets what is older than two turns. Called at the start of a second. */
  turn(second: number): void {
    const age = second - this.#turnedAt;
    if (age < secondsPerTurn) return;
    this.#turnedAt = second;
    this.#odd = 1 - this.#odd;
    const words = this.#words;
    if (age >= 2 * secondsPerTurn) words.fill(0);
    // Of each pair the bit of the turn before stays.
    const kept = this.#odd === 1 ? 0x55555555 : 0xaaaaaaaa | 0;
    for (let i = 0; i < words.length; i += 1) words[i] = words[i]! & kept;
  }

  #has(mark: number, end: number): boolean {
    return ((this.#marks[this.#place]! >> end) & (mark * bothTurns)) !== 0;
  }

  #set(mark: number): void {
    this.#marks[this.#place]! |= mark << (this.#odd + this.#end);
  }
}
