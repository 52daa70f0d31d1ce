/** Runs the filter's programs over frames without an interface (BPF_PROG_TEST_RUN). Needs root. */
import koffi from 'koffi';
import { type AttackClass, attackClassOf } from '#contracts/attack-classes.ts';
import { type FilteredVector, matchesOf, type PacketMatch } from '#contracts/sensor-api/filter.ts';
import { type LoadedFilter, loadFilterPrograms } from '#sensor/kernel/filter.ts';
import type { FilterRule } from '#sensor/kernel/index.ts';
import { libbpf, must } from '#sensor/kernel/libbpf.ts';

const optionsBytes = 80;
/** `__sk_buff`, and the position of what offload has merged in it. */
const contextBytes = 192;
const [segmentsAt, segmentBytesAt] = [164, 176];
const pairBytes = 32;
const openingBytes = 16;
const secondNs = 1_000_000_000n;
const [passed, dropped] = [2, 1];
/** Of tc: TC_ACT_UNSPEC, TC_ACT_SHOT. */
const [unspecified, shot] = [0xffff_ffff, 2];

export class FilterRuns {
  readonly loaded: LoadedFilter;
  readonly #bpf = libbpf();
  readonly #data = koffi.alloc('uint8_t', 65_536);
  readonly #options = koffi.alloc('uint8_t', optionsBytes);
  readonly #context = koffi.alloc('uint8_t', contextBytes);
  readonly #bytes = new Uint8Array(koffi.view(this.#data, 65_536));
  readonly #view = new DataView(koffi.view(this.#options, optionsBytes));

  /** `file`: another object than the one of this project. */
  constructor(file?: string) {
    this.loaded = loadFilterPrograms(null, file);
    new Uint8Array(this.#view.buffer).fill(0);
    this.#view.setBigUint64(0, BigInt(optionsBytes), true);
    this.#view.setBigUint64(8, koffi.address(this.#data), true);
    this.#view.setUint32(60, 1, true);
  }

  /** A frame that comes in so long after the last sign of life: true when it passes. */
  receive(frame: Uint8Array, sinceBeatNs = 0n): boolean {
    this.loaded.filter.beat(process.hrtime.bigint() - sinceBeatNs);
    const verdict = this.#run(this.loaded.programs.filter, frame);
    if (verdict !== passed && verdict !== dropped) throw new Error(`verdict ${verdict}`);
    return verdict === passed;
  }

  /** What a frame that comes in costs, as the kernel measures it. */
  nanosecondsOf(frame: Uint8Array, repeat: number): number {
    this.loaded.filter.beat();
    this.#view.setUint32(60, repeat, true);
    this.#run(this.loaded.programs.filter, frame);
    this.#view.setUint32(60, 1, true);
    return this.#view.getUint32(64, true);
  }

  /**
   * A frame that goes out so long after the last sign of life: true when it passes. `merged`: offload made it of so many segments, each with so
   * many bytes of payload.
   */
  send(frame: Uint8Array, sinceBeatNs = 0n, merged = { segments: 0, bytes: 0 }): boolean {
    this.loaded.filter.beat(process.hrtime.bigint() - sinceBeatNs);
    const context = new DataView(koffi.view(this.#context, contextBytes));
    new Uint8Array(context.buffer).fill(0);
    context.setUint32(segmentsAt, merged.segments, true);
    context.setUint32(segmentBytesAt, merged.bytes, true);
    this.#view.setBigUint64(32, koffi.address(this.#context), true);
    this.#view.setUint32(48, contextBytes, true);
    const verdict = this.#run(this.loaded.programs.learn, frame);
    this.#view.setBigUint64(32, 0n, true);
    this.#view.setUint32(48, 0, true);
    if (verdict !== unspecified && verdict !== shot) throw new Error(`verdict ${verdict}`);
    return verdict === unspecified;
  }

  /** Lets two seconds pass for the pairs in the making. */
  age(): void {
    const { openings } = this.loaded.maps;
    const value = Buffer.alloc(openingBytes);
    // An update moves an entry to the front of those with its hash, so that a walk over two of them would never end.
    for (const key of this.#keysOf(openings)) {
      if (this.#bpf.lookup(openings, key, value) < 0) continue;
      value.writeBigInt64LE(value.readBigInt64LE(0) - 2n * secondNs, 0);
      must(this.#bpf.update(openings, key, value, 0n), 'age a pair');
    }
  }

  #keysOf(map: number): Buffer[] {
    const found: Buffer[] = [];
    for (let key: Buffer | null = null; ; ) {
      const next = Buffer.alloc(pairBytes);
      if (this.#bpf.nextKey(map, key, next) < 0) return found;
      found.push(next);
      key = next;
    }
  }

  close(): void {
    this.loaded.filter.close();
    this.loaded.unload();
    for (const room of [this.#data, this.#options, this.#context]) koffi.free(room);
  }

  #run(program: number, frame: Uint8Array): number {
    this.#bytes.set(frame);
    this.#view.setUint32(24, frame.length, true);
    // The call before has left the size of its answer.
    this.#view.setUint32(28, 0, true);
    must(this.#bpf.testRun(program, this.#options), 'run the filter');
    return this.#view.getUint32(56, true);
  }
}

/** Rules against an attack that begins now and is dropped at once; `part` changes them. */
export function rulesAgainst(
  target: string,
  vector: FilteredVector,
  { match, ...part }: Partial<Omit<FilterRule, 'match'>> & { match?: Partial<PacketMatch> } = {},
): FilterRule[] {
  const nowMs = Date.now();
  return matchesOf({ class: vector.class, vectors: [vector] }, target).map((one) => ({
    ...{ target, direction: 'inbound' as const, class: attackClassOf(one.class) as AttackClass },
    match: { ...one.match, ...match },
    ...{ beganAtMs: nowMs, dropsAtMs: nowMs - 1000, endsAtMs: nowMs + 60_000 },
    ...part,
  }));
}
