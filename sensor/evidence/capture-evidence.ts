/** The recordings of one capture: says what its threads are to record, and puts together what they give. */
import { parseAddress, parsePrefix } from '#common/ip/index.ts';
import { type EvidencePacket, evidencePacketsMax } from '#contracts/sensor-api/evidence.ts';
import type { Incident } from '#sensor/detector/index.ts';
import {
  type RecordedPackets,
  readRecords,
  recordingsMax,
  type WantedRecording,
} from '#sensor/recording/index.ts';
/** The first packets of one attack; none where there were none. */
export interface Recorded {
  id: string;
  linkType: number;
  packets: EvidencePacket[];
}

interface Under {
  wanted: WantedRecording;
  /** False: the threads are asked for what they have. */
  isWanted: boolean;
  parts: RecordedPackets[];
}

/** What the collection sees of it. */
export class CaptureEvidence {
  readonly #onRecorded: (recorded: Recorded) => void;
  readonly #under = new Map<string, Under>();
  #listener: (wanted: readonly WantedRecording[]) => void = () => {};

  constructor(onRecorded: (recorded: Recorded) => void) {
    this.#onRecorded = onRecorded;
  }

  /** Recordings that are under way. */
  get size(): number {
    return this.#under.size;
  }

  isRecording(id: string): boolean {
    return this.#under.has(id);
  }

  /** Ids that are wanted. */
  wanted(): string[] {
    return [...this.#under.values()].filter((one) => one.isWanted).map((one) => one.wanted.id);
  }

  /** False: there is no room. */
  begin(incident: Pick<Incident, 'id' | 'target' | 'direction'>): boolean {
    if (this.#under.size >= recordingsMax) return false;
    const wanted = wantedOf(incident);
    if (!wanted) return false;
    this.#under.set(wanted.id, { wanted, isWanted: true, parts: [] });
    this.#tell();
    return true;
  }

  /** Asks the threads for what they have. */
  finish(ids: readonly string[]): void {
    const under = ids.flatMap((id) => this.#under.get(id) ?? []).filter((one) => one.isWanted);
    for (const one of under) one.isWanted = false;
    if (under.length > 0) this.#tell();
  }

  /** Called with what the threads are to record from now on, and at once with what they are to record now. */
  onWanted(listener: (wanted: readonly WantedRecording[]) => void): void {
    this.#listener = listener;
    listener([]);
  }

  /** What a thread, of `members`, recorded. */
  take(recorded: readonly RecordedPackets[], members: number): void {
    for (const part of recorded) this.#under.get(part.id)?.parts.push(part);
    const ids = recorded.map(({ id }) => id);
    for (const id of ids) if ((this.#under.get(id)?.parts.length ?? 0) >= members) this.#complete(id);
    // One thread is full: the first packets are there.
    this.finish(ids);
  }

  /** The threads have ended. */
  noteEnded(): void {
    for (const [id, { isWanted, parts }] of this.#under)
      if (!isWanted || parts.length > 0) this.#complete(id);
    this.#tell();
  }

  #complete(id: string): void {
    const { parts } = this.#under.get(id)!;
    this.#under.delete(id);
    const packets = parts
      .flatMap(({ records }) => readRecords(records))
      .sort((a, b) => a.seconds - b.seconds || a.nanoseconds - b.nanoseconds)
      .slice(0, evidencePacketsMax);
    this.#tell();
    this.#onRecorded({ id, linkType: parts[0]?.linkType ?? 0, packets });
  }

  #tell(): void {
    this.#listener([...this.#under.values()].filter((one) => one.isWanted).map((one) => one.wanted));
  }
}

function wantedOf({ id, target, direction }: Pick<Incident, 'id' | 'target' | 'direction'>) {
  const prefix =
    target.kind === 'host'
      ? { bytes: parseAddress(target.value), length: 128 }
      : (parsePrefix(target.value) ?? { bytes: null, length: 0 });
  const { bytes, length } = prefix;
  if (!bytes) return null;
  const isV4 = bytes.length === 4;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const word = (at: number) => view.getInt32(at * 4);
  const words: WantedRecording['words'] = isV4 ? [0, 0, 0, word(0)] : [word(0), word(1), word(2), word(3)];
  const prefixBits = target.kind === 'prefix' && isV4 ? 96 + length : length;
  return { id, direction, version: isV4 ? 4 : 6, words, prefixBits } satisfies WantedRecording;
}
