/**
 * Feeds a tap with frames that no engine counts: those of files. It decodes them, and keeps what is needed to know which
 * flows go both ways, as an engine does.
 */
import {
  decodeFrame,
  exchangeOf,
  Field,
  FlowTable,
  Meaning,
  noteState,
  Packet,
  type PacketTap,
  randomKey,
  Verdict,
} from '#sensor/capture/index.ts';

const flowsMax = 65_536;
const tidyEverySeconds = 60;

export class FrameFeed {
  readonly #tap: Pick<PacketTap, 'packet'>;
  readonly #packet = new Packet();
  readonly #flows: FlowTable;
  #second = 0;
  #tidiedAt = 0;

  constructor(tap: Pick<PacketTap, 'packet'>) {
    this.#tap = tap;
    this.#flows = new FlowTable({ flowsMax, key: randomKey(), onRemove: () => {} });
  }

  /** Tells of one frame, whose second is not before that of the last one. `segments` as in `Capture.observe`. */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    linkType: number,
    segments: number,
    second: number,
  ): void {
    const p = this.#packet;
    p.attach(bytes);
    p.end = Math.min(offset + capturedLength, bytes.length);
    p.wireEnd = Math.max(offset + wireLength, p.end);
    if (decodeFrame(p, linkType, offset) !== Verdict.ip) return;
    const exchange = p.fragmentOffset > 0 ? 0 : this.#note(p, Math.max(this.#second, second));
    this.#tap.packet(p, Math.max(1, segments), segments === 0, exchange);
  }

  #note(p: Packet, second: number): number {
    const flows = this.#flows;
    this.#second = second;
    if (second - this.#tidiedAt >= tidyEverySeconds) {
      this.#tidiedAt = second;
      flows.removeIdle(second);
    }
    const base = flows.locate(p, 0, second);
    const { words, side } = flows;
    const before = words[base + Field.flags]!;
    words[base + Field.packets + side]! += 1;
    words[base + Field.lastSeen] = second;
    const meaning = noteState(words, base, side, p);
    if ((meaning & Meaning.end) !== 0) flows.noteEnd(base, second);
    return exchangeOf(before, words[base + Field.flags]!, side, p.protocol);
  }
}
