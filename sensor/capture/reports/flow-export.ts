/**
 * Collects what a capture file's reader needs beyond minute counters: every flow with each of its names, every
 * conversation, address and application of the file, and every DNS answer.
 *
 * Nothing here is text: flows are rows of words, sums are kept by key, and both move to a file when memory is full. Of
 * unanswered, unnamed single packets only a part is exported, so that a flood does not fill the result; `cut` counts
 * the rest.
 *
 * All branches for single packets and full lists run for every flow: they often occur only at the end of a capture, and
 * a branch taken for the first time would have the code recompiled.
 */

import type { Packet } from '../decode/packet.ts';
import { evidenceOf, Field, Flag, flowWords } from '../flows/flow-record.ts';
import type { FlowTable } from '../flows/flow-table.ts';
import type { NameTable } from '../names/name-table.ts';
import { answerAtHand, FlowRow, flowRowWords, type RawAnswer } from './listed-rows.ts';
import { type PageFile, protocolLabel, RowStore } from './row-store.ts';
import { SummingTable } from './summing-table.ts';

/** Flows, addresses, conversations and applications of single packets that are exported; more are only counted. */
const noiseMax = 16_384;
/** Bytes of flows in memory, and keys of each table. */
const flowBytesMax = 24 * 1024 * 1024;
const keysMax = 1 << 18;

/** Counts of what was left out of the lists. */
export interface CutCounts {
  /** Flows of one packet. */
  flows: number;
  /** Packets and bytes without an application, and without a conversation. */
  applicationPackets: number;
  applicationBytes: number;
  conversationPackets: number;
  conversationBytes: number;
  /** Packets whose address got no row. */
  hostPackets: number;
  /** Names without room. */
  names: number;
}

/** Counters of a connection that were already accounted. */
interface AccountedCounters {
  up: number;
  down: number;
  upPackets: number;
  downPackets: number;
}

interface SeenName {
  evidence: number;
  name: number;
}

const nothing: AccountedCounters = { up: 0, down: 0, upPackets: 0, downPackets: 0 };

export interface FlowExportOptions {
  names: NameTable;
  seed: number;
  /** Capacity of the flow table. */
  flowsMax: number;
  /** Receives rows that do not fit into memory; null keeps everything in memory. */
  file: PageFile | null;
  onAnswer(answer: RawAnswer): void;
  /** False for usage that no application is made of; without it all usage counts. */
  countsUsage?: ((words: Int32Array, base: number, client: number, name: number) => boolean) | undefined;
}

export class FlowExport {
  readonly flows: RowStore;
  readonly conversations: SummingTable;
  readonly hosts: SummingTable;
  readonly applications: SummingTable;
  readonly cut: CutCounts = {
    flows: 0,
    applicationPackets: 0,
    applicationBytes: 0,
    conversationPackets: 0,
    conversationBytes: 0,
    hostPackets: 0,
    names: 0,
  };

  readonly #options: FlowExportOptions;
  /**
   * First name of each flow, with its evidence in the upper bits, and the further names of the few flows with several.
   */
  readonly #firstNames: Int32Array;
  readonly #moreNames = new Map<number, SeenName[]>();
  readonly #accounted = new Map<number, AccountedCounters>();
  /** Rows of noise in each list. */
  readonly #noise = { flows: 0, conversations: 0, hosts: 0, applications: 0 };

  constructor(options: FlowExportOptions) {
    this.#options = options;
    const { seed, file } = options;
    this.#firstNames = new Int32Array(options.flowsMax);
    this.flows = new RowStore(flowRowWords, flowBytesMax, file);
    // Each flow may be a conversation of its own. There are fewer addresses and applications, and they stay in the
    // cache.
    const table = { recordsMax: keysMax, recordsMin: Math.min(keysMax, options.flowsMax * 2), seed, file };
    this.conversations = new SummingTable({ ...table, keyWords: 9, sumCount: 4 });
    const few = { ...table, recordsMin: Math.max(256, table.recordsMin >> 4) };
    this.hosts = new SummingTable({ ...few, keyWords: 5, sumCount: 3 });
    this.applications = new SummingTable({ ...few, keyWords: 7, sumCount: 3 });
  }

  /** Adds a name that was seen on the flow at `base`. */
  addName(base: number, evidence: number, name: number): void {
    const record = base / flowWords;
    const first = this.#firstNames[record]!;
    const packed = (evidence << evidenceShift) | (name + 1);
    if (first === packed) return;
    if (first === 0) {
      this.#firstNames[record] = packed;
      return;
    }
    const more = this.#moreNames.get(base);
    if (!more) this.#moreNames.set(base, [{ evidence, name }]);
    else if (!more.some((entry) => entry.evidence === evidence && entry.name === name))
      more.push({ evidence, name });
  }

  /**
   * Accounts the flow's counters since the last call to its addresses, conversation and application. The connection
   * keeps its counters, so the accounted part is stored unless this `isLast`.
   */
  account({ words, sums }: FlowTable, base: number, isLast: boolean): void {
    const sum = (base + Field.bytes) >> 1;
    const before = this.#takeAccounted(base);
    const up = sums[sum]! - before.up;
    const down = sums[sum + 1]! - before.down;
    const upPackets = words[base + Field.packets]! - before.upPackets;
    const downPackets = words[base + Field.packets + 1]! - before.downPackets;
    if (!isLast) {
      this.#accounted.set(base, {
        up: sums[sum]!,
        down: sums[sum + 1]!,
        upPackets: words[base + Field.packets]!,
        downPackets: words[base + Field.packets + 1]!,
      });
    }
    const packets = upPackets + downPackets;
    if (packets === 0) return;
    const flags = words[base + Field.flags]!;
    const isUnknown = ((flags & Flag.answered) | words[base + Field.name]!) === 0;
    const isNoise = packets <= 2 && isUnknown;
    this.#addConversation(words, base, up, upPackets, down, downPackets, isNoise);
    const isLowerLocal = (flags & Flag.lowerIsLocal) !== 0;
    const isHigherLocal = (flags & Flag.higherIsLocal) !== 0;
    const isLowerSure = !isNoise || isLowerLocal;
    const isHigherSure = !isNoise || isHigherLocal;
    if (isSameAddress(words, base)) {
      this.#addHost(words, base, base, up + down, up + down, packets, isLowerSure);
    } else {
      this.#addHost(words, base, base, down, up, packets, isLowerSure);
      this.#addHost(words, base, base + 4, up, down, packets, isHigherSure);
    }
    this.#addApplication(words, base, up, down, packets, isNoise);
  }

  /** Exports a flow that has ended, with its counters since its start, once for each of its names. */
  addFlow(words: Int32Array, sums: Float64Array, base: number, serial: number): void {
    const record = base / flowWords;
    const first = this.#firstNames[record]!;
    this.#firstNames[record] = 0;
    const name = words[base + Field.name]! - 1;
    const isSingle = words[base + Field.packets]! + words[base + Field.packets + 1]! === 1;
    const isNoise = name < 0 && isSingle;
    const noise = this.#noise;
    const isFull = noise.flows >= noiseMax;
    this.cut.flows += isNoise && isFull ? 1 : 0;
    if (isNoise && isFull) return;
    noise.flows += isNoise ? 1 : 0;
    if (first === 0) {
      this.#addFlowRow(words, sums, base, serial, name < 0 ? 0 : evidenceOf(words, base), name);
      return;
    }
    this.#addFlowRow(words, sums, base, serial, first >>> evidenceShift, (first & nameMask) - 1);
    const more = this.#moreNames.get(base);
    if (!more) return;
    this.#moreNames.delete(base);
    for (const entry of more) this.#addFlowRow(words, sums, base, serial, entry.evidence, entry.name);
  }

  /** Reports the answer in `dnsMessage`, sent by the source of `packet`. */
  addAnswer(packet: Packet, querySeen: boolean): void {
    answerAtHand.take(packet, querySeen);
    this.#options.onAnswer(answerAtHand);
  }

  #takeAccounted(base: number): AccountedCounters {
    if (this.#accounted.size === 0) return nothing;
    const accounted = this.#accounted.get(base);
    if (!accounted) return nothing;
    this.#accounted.delete(base);
    return accounted;
  }

  #addFlowRow(
    words: Int32Array,
    sums: Float64Array,
    base: number,
    serial: number,
    evidence: number,
    name: number,
  ): void {
    const rows = this.flows;
    rows.append();
    const to = rows.words;
    const at = rows.at;
    const isTurned = (words[base + Field.flags]! & Flag.clientIsHigher) !== 0;
    const client = base + (isTurned ? 4 : 0);
    const server = base + (isTurned ? 0 : 4);
    for (let word = 0; word < 4; word += 1) {
      to[at + FlowRow.client + word] = words[client + word]!;
      to[at + FlowRow.server + word] = words[server + word]!;
    }
    const ports = words[base + Field.ports]!;
    to[at + FlowRow.ports] = isTurned ? (ports << 16) | (ports >>> 16) : ports;
    to[at + FlowRow.meta] = words[base + Field.meta]!;
    to[at + FlowRow.serial] = serial;
    to[at + FlowRow.evidence] = evidence;
    to[at + FlowRow.name] = name + 1;
    to[at + FlowRow.flowName] = words[base + Field.name]!;
    const packets = base + Field.packets;
    to[at + FlowRow.packets] = words[packets + (isTurned ? 1 : 0)]!;
    to[at + FlowRow.packets + 1] = words[packets + (isTurned ? 0 : 1)]!;
    const sum = (base + Field.bytes) >> 1;
    const target = (at + FlowRow.bytes) >> 1;
    rows.sums[target] = sums[sum + (isTurned ? 1 : 0)]!;
    rows.sums[target + 1] = sums[sum + (isTurned ? 0 : 1)]!;
  }

  /** Adds bytes between two addresses, the numerically smaller one first. */
  #addConversation(
    words: Int32Array,
    base: number,
    bytesUp: number,
    packetsUp: number,
    bytesDown: number,
    packetsDown: number,
    isNoise: boolean,
  ): void {
    const table = this.conversations;
    const { key } = table;
    const isOrdered = !isUnsignedAbove(words, base, base + 4);
    const a = isOrdered ? base : base + 4;
    const b = isOrdered ? base + 4 : base;
    for (let word = 0; word < 4; word += 1) {
      key[word] = words[a + word]!;
      key[4 + word] = words[b + word]!;
    }
    key[8] = (words[base + Field.meta]! >> 8) & 0xff;
    const noise = this.#noise;
    const hasRoom = noise.conversations < noiseMax;
    const at = table.locate(!isNoise || hasRoom);
    noise.conversations += table.isNew && isNoise ? 1 : 0;
    const packets = packetsUp + packetsDown;
    const bytes = bytesUp + bytesDown;
    const { cut } = this;
    cut.conversationPackets += at < 0 ? packets : 0;
    cut.conversationBytes += at < 0 ? bytes : 0;
    if (at < 0) return;
    const { sums } = table;
    const isSame = isOrdered && !isUnsignedAbove(words, base + 4, base);
    const up = at + (isOrdered ? 0 : 2);
    const down = at + (isOrdered && !isSame ? 2 : 0);
    sums[up]! += packetsUp;
    sums[up + 1]! += bytesUp;
    sums[down]! += packetsDown;
    sums[down + 1]! += bytesDown;
  }

  #addHost(
    words: Int32Array,
    base: number,
    address: number,
    rxBytes: number,
    txBytes: number,
    packets: number,
    isSure: boolean,
  ): void {
    const table = this.hosts;
    const { key } = table;
    for (let word = 0; word < 4; word += 1) key[word] = words[address + word]!;
    key[4] = (words[base + Field.meta]! >> 8) & 0xff;
    const noise = this.#noise;
    const hasRoom = noise.hosts < noiseMax;
    const at = table.locate(isSure || hasRoom);
    noise.hosts += table.isNew && !isSure ? 1 : 0;
    this.cut.hostPackets += at < 0 ? packets : 0;
    if (at < 0) return;
    const { sums } = table;
    sums[at]! += rxBytes;
    sums[at + 1]! += txBytes;
    sums[at + 2]! += packets;
  }

  /**
   * Adds to the application: a name or a protocol label, otherwise the remote address. Inbound is towards the local
   * end, or towards the client when neither or both ends are local.
   */
  #addApplication(
    words: Int32Array,
    base: number,
    up: number,
    down: number,
    packets: number,
    isNoise: boolean,
  ): void {
    const flags = words[base + Field.flags]!;
    const meta = words[base + Field.meta]!;
    const ports = words[base + Field.ports]!;
    const client = (flags & Flag.clientIsHigher) !== 0 ? 1 : 0;
    const locals = flags & (Flag.lowerIsLocal | Flag.higherIsLocal);
    const isServed = locals === (client === 0 ? Flag.higherIsLocal : Flag.lowerIsLocal);
    const id = words[base + Field.name]! - 1;
    const { names, countsUsage } = this.#options;
    const name = id < 0 ? -1 : names.domain(id);
    if (countsUsage && !countsUsage(words, base, client, name)) return;
    const table = this.applications;
    const { key } = table;
    const version = (meta >> 8) & 0xff;
    const isLabelled = protocolLabel(meta & 0xff, version) !== null;
    const isAddress = !isLabelled && name < 0;
    const remote = base + (client === 0 ? (isServed ? 0 : 4) : isServed ? 4 : 0);
    const mask = isAddress ? -1 : 0;
    for (let word = 0; word < 4; word += 1) key[word] = words[remote + word]! & mask;
    key[4] = (meta & 0xff) | ((isAddress ? version : 0) << 8);
    const lower = ports >>> 16;
    const higher = ports & 0xffff;
    key[5] = client === 0 ? higher : lower;
    key[6] = isLabelled ? -1 : name;
    const noise = this.#noise;
    const hasRoom = noise.applications < noiseMax;
    const at = table.locate(!isNoise || hasRoom);
    noise.applications += table.isNew && isNoise ? 1 : 0;
    const bytes = up + down;
    const { cut } = this;
    cut.applicationPackets += at < 0 ? packets : 0;
    cut.applicationBytes += at < 0 ? bytes : 0;
    if (at < 0) return;
    const { sums } = table;
    const isUpInbound = (client === 0) === isServed;
    sums[at]! += isUpInbound ? up : down;
    sums[at + 1]! += isUpInbound ? down : up;
    sums[at + 2]! += packets;
  }
}

/** Name ids have 20 bits; the evidence is above them. */
const evidenceShift = 20;
const nameMask = (1 << evidenceShift) - 1;

function isSameAddress(words: Int32Array, base: number): boolean {
  const first = (words[base]! ^ words[base + 4]!) | (words[base + 1]! ^ words[base + 5]!);
  const last = (words[base + 2]! ^ words[base + 6]!) | (words[base + 3]! ^ words[base + 7]!);
  return (first | last) === 0;
}

/** Numerical order of two addresses in words. */
function isUnsignedAbove(words: Int32Array, a: number, b: number): boolean {
  for (let word = 0; word < 4; word += 1) {
    if (words[a + word] !== words[b + word]) return words[a + word]! >>> 0 > words[b + word]! >>> 0;
  }
  return false;
}
