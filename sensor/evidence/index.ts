/**
 * Evidence: capture files of attacks, from the detection to the monitor.
 *
 * Guarantees: only a monitor whose plan says `takes_evidence` makes a sensor record. A recording holds the first 2,000 packets
 * after the detection, 256 bytes of each; drills and traffic that need not be an attack have none. A file is on disk until the
 * monitor has stored it, also through restarts, within the bounds of `evidence-files.ts`. It is sent when its incident
 * is over and after the records of incidents. A failure here does not affect incidents.
 *
 * The capture threads record (`sensor/recording`).
 */
import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { parseAddress, parsePrefix } from '#common/ip/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type EvidencePacket, encodeEvidence, evidencePacketsMax } from '#contracts/sensor-api/evidence.ts';
import type { Incident } from '#sensor/detector/index.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import {
  type RecordedPackets,
  readRecords,
  recordingsMax,
  type WantedRecording,
} from '#sensor/recording/index.ts';
import type { Spool } from '#sensor/spool/index.ts';
import { createEvidenceFiles, type EvidenceFiles, type EvidenceFilesDeps } from './evidence-files.ts';
import { Sender } from './sender.ts';

export interface EvidenceOptions extends Pick<EvidenceFilesDeps, 'freeBytes'> {
  captures: readonly string[];
  stateDirectory: string;
  client: MonitorClient;
  /** Files wait for the incidents in it. */
  spool: Pick<Spool, 'oldest'>;
  clock: Clock;
  reporter: Reporter;
}

/** The incidents of one capture that go on. */
export interface OpenIncidents {
  capture: string;
  open: readonly Incident[];
}

/** What waits for the monitor. */
export interface EvidenceStatus {
  /** False: the monitor takes no capture files. */
  takesEvidence: boolean;
  /** Attacks whose first packets are recorded now. */
  recording: number;
  waitingFiles: number;
  waitingBytes: number;
  /** Files that made room for others since the start. */
  dropped: number;
  /** Why files do not reach the monitor; null where they do. */
  why: string | null;
}

const compress = promisify(zstdCompress);

export class Evidence implements Part {
  readonly name = 'evidence';
  readonly #reporter: Reporter;
  readonly #files: EvidenceFiles;
  readonly #sender: Sender;
  readonly #captures: ReadonlyMap<string, CaptureEvidence>;
  #takes = false;
  /** Attacks of which the first packets were recorded or lost, while they go on. */
  readonly #done = new Set<string>();
  /** Attacks that found no room yet. */
  readonly #without = new Set<string>();
  /** Files that are being written. */
  readonly #writing = new Map<string, Promise<void>>();

  constructor(options: EvidenceOptions) {
    const { captures, reporter } = options;
    this.#reporter = reporter;
    this.#files = createEvidenceFiles(options);
    this.#sender = new Sender({ ...options, files: this.#files });
    this.#captures = new Map(captures.map((name) => [name, new CaptureEvidence((one) => this.#keep(one))]));
  }

  async start(): Promise<void> {
    this.#files.open();
    this.#sender.start();
  }

  /** The captures have stopped: what they gave is written. */
  async stop(): Promise<void> {
    for (const capture of this.#captures.values()) capture.noteEnded();
    await Promise.all(this.#writing.values());
    await this.#sender.stop();
  }

  /** Whether the monitor takes capture files. Without it nothing is recorded or sent. */
  announce(takesEvidence: boolean): void {
    this.#takes = takesEvidence;
    this.#sender.announce(takesEvidence);
    if (!takesEvidence) for (const capture of this.#captures.values()) capture.finish(capture.wanted());
  }

  /** The recordings of a capture of `captures`. */
  of(capture: string): CaptureEvidence {
    return this.#captures.get(capture)!;
  }

  /** All incidents that go on: new attacks are recorded, and files of those that are over are sent. */
  note(captures: readonly OpenIncidents[]): void {
    const open = new Set(captures.flatMap((one) => one.open.map(({ id }) => id)));
    for (const id of this.#done) if (!open.has(id)) this.#done.delete(id);
    for (const [name, capture] of this.#captures) {
      capture.finish(capture.wanted().filter((id) => !open.has(id)));
      for (const incident of captures.find((one) => one.capture === name)?.open ?? [])
        this.#consider(capture, incident);
    }
    this.#noteMissed(open);
    this.#sender.follow((id) => open.has(id) || this.#writing.has(id));
  }

  /** True where a capture file is recorded or waits. */
  has(id: string): boolean {
    if (this.#files.has(id) || this.#writing.has(id)) return true;
    return [...this.#captures.values()].some((capture) => capture.isRecording(id));
  }

  status(): EvidenceStatus {
    const captures = [...this.#captures.values()];
    return {
      takesEvidence: this.#takes,
      recording: captures.reduce((sum, one) => sum + one.size, this.#writing.size),
      waitingFiles: this.#files.ids().length,
      waitingBytes: this.#files.bytes(),
      dropped: this.#files.dropped(),
      why: this.#sender.trouble,
    };
  }

  #consider(capture: CaptureEvidence, incident: Incident): void {
    const { id, severity, drill, target } = incident;
    // Packets of a whole capture would be those of everything.
    if (!this.#takes || severity !== 'attack' || drill || target.kind === 'capture') return;
    if (this.#done.has(id) || this.has(id)) return;
    if (capture.begin(incident)) this.#without.delete(id);
    else this.#without.add(id);
  }

  #noteMissed(open: ReadonlySet<string>): void {
    for (const id of this.#without) {
      if (open.has(id)) continue;
      this.#without.delete(id);
      this.#reporter.warn('no packets of an attack were recorded: too many attacks at once', {
        incident: id,
      });
    }
  }

  #keep({ id, linkType, packets }: Recorded): void {
    // The threads ended before the first packet: the next ones begin again.
    if (packets.length === 0 || !this.#takes) return;
    this.#done.add(id);
    const writing = this.#write(id, encodeEvidence({ linkType, packets }))
      .then(() =>
        this.#reporter.info('packets of an attack were recorded', { incident: id, packets: packets.length }),
      )
      .catch((error) =>
        this.#reporter.error('a capture file of an attack can not be kept', {
          incident: id,
          why: describeError(error),
        }),
      )
      .finally(() => this.#writing.delete(id));
    this.#writing.set(id, writing);
  }

  async #write(id: string, file: Uint8Array): Promise<void> {
    await this.#files.keep(id, await compress(file));
  }
}

// The recordings of one capture: says what its threads are to record, and puts together what they give.

/** The first packets of one attack; none where there were none. */
interface Recorded {
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
