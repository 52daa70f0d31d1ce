/**
 * What a capture file's reader wants beyond the counters of a minute: every flow with every name on it, every DNS
 * answer, every conversation. It grows with the file and is used for files only.
 */
import { formatWords } from './address-words.ts';
import {
  dnsAddresses,
  dnsAddressTtls,
  dnsChain,
  dnsMessage,
  dnsNameLengths,
  dnsNames,
} from './dns-message.ts';
import { evidenceOf, Field, Flag } from './flow-record.ts';
import { KeyedTable } from './keyed-table.ts';
import { evidenceText, protocolLabel } from './ledger.ts';
import type { NameEvidence } from './minute-report.ts';
import type { NameTable } from './name-table.ts';
import type { Packet } from './packet.ts';
import type { TunnelPaths } from './tunnels.ts';

/** An end of a flow; `port` is null where the protocol has none. */
export interface ListedEnd {
  ip: string;
  port: number | null;
}

/** A connection and one name that was seen on it. A connection with three names is listed three times. */
export interface ListedFlow {
  protocol: number;
  client: ListedEnd;
  server: ListedEnd;
  /** As on the wire: lower case, without port and final dot; null where none. */
  host: string | null;
  /** Registrable domain, protocol label or the server's address. */
  name: string;
  evidence: Exclude<NameEvidence, 'ip_protocol'>;
  /** Tunnels around it, outermost first, joined by `/`; its bytes then count on the outer conversation. */
  tunnel: string | null;
  clientPackets: number;
  clientBytes: number;
  serverPackets: number;
  serverBytes: number;
}

/** One DNS answer with at least one A, AAAA or CNAME record. */
export interface ListedAnswer {
  client: ListedEnd;
  server: ListedEnd;
  name: string;
  cnameChain: string[];
  addresses: { address: string; ttl: number }[];
  /** The question was seen before, from the same client. */
  querySeen: boolean;
}

/** Bytes and packets between two addresses; `a` is the numerically smaller one. */
export interface ListedConversation {
  a: string;
  b: string;
  packetsAToB: number;
  bytesAToB: number;
  packetsBToA: number;
  bytesBToA: number;
}

/** Counters of a connection up to where they were booked. */
export interface BookedCounters {
  up: number;
  down: number;
  upPackets: number;
  downPackets: number;
}

interface SeenName {
  evidence: number;
  name: number;
}

/** Flows and conversations of one packet that are listed; more are a flood, and only counted. */
const noiseMax = 16_384;

const portProtocols = new Set([6, 17, 132]);

export class Listing {
  readonly flows: ListedFlow[] = [];
  readonly answers: ListedAnswer[] = [];
  readonly #names: NameTable;
  readonly #seen = new Map<number, SeenName[]>();
  readonly #booked = new Map<number, BookedCounters>();
  readonly #conversations: KeyedTable;
  /** Serial numbers of the flows, so that they are listed in the order in which they began. */
  readonly #order: number[] = [];
  readonly #tunnels: TunnelPaths;

  constructor(names: NameTable, seed: number, tunnels: TunnelPaths) {
    this.#names = names;
    this.#tunnels = tunnels;
    this.#conversations = new KeyedTable(
      { keyWords: 9, wordCount: 0, sumCount: 4, recordsMax: 1 << 22 },
      seed,
    );
  }

  /** Notes a name that was seen on the flow at `base`. */
  addName(base: number, evidence: number, name: number): void {
    const seen = this.#seen.get(base);
    if (!seen) this.#seen.set(base, [{ evidence, name }]);
    else if (!seen.some((entry) => entry.evidence === evidence && entry.name === name))
      seen.push({ evidence, name });
  }

  /** Remembers how far the flow's counters are booked. */
  noteBooked(base: number, words: Int32Array, sums: Float64Array): void {
    const sum = (base + Field.bytes) >> 1;
    this.#booked.set(base, {
      up: sums[sum]!,
      down: sums[sum + 1]!,
      upPackets: words[base + Field.packets]!,
      downPackets: words[base + Field.packets + 1]!,
    });
  }

  /** How far they were booked, which is then forgotten. */
  takeBooked(base: number): BookedCounters | null {
    const booked = this.#booked.get(base);
    if (!booked) return null;
    this.#booked.delete(base);
    return booked;
  }

  /** Lists a flow that is over, with its counters since its start. False when it is one of too many single packets. */
  addFlow(words: Int32Array, sums: Float64Array, base: number, serial: number): boolean {
    const names = this.#seen.get(base) ?? [];
    this.#seen.delete(base);
    const isNoise =
      words[base + Field.name] === 0 && words[base + Field.packets]! + words[base + Field.packets + 1]! === 1;
    if (isNoise && this.flows.length >= noiseMax) return false;
    if (names.length === 0) {
      const name = words[base + Field.name]! - 1;
      names.push({ evidence: name < 0 ? 0 : evidenceOf(words, base), name });
    }
    for (const entry of names) {
      this.#order.push(serial);
      this.flows.push(this.#listFlow(words, sums, base, entry));
    }
    return true;
  }

  /** Puts the flows into the order in which they began. */
  sortFlows(): void {
    const positions = this.flows.map((_, i) => i).sort((a, b) => this.#order[a]! - this.#order[b]! || a - b);
    const sorted = positions.map((i) => this.flows[i]!);
    for (const [i, flow] of sorted.entries()) this.flows[i] = flow;
  }

  /** Adds bytes between two addresses, the lower one at `lower` in `words`, the higher one four words on. */
  addConversation(
    version: number,
    words: Int32Array,
    lower: number,
    bytesUp: number,
    packetsUp: number,
    bytesDown: number,
    packetsDown: number,
    isNoise: boolean,
  ): void {
    const key = this.#conversations.key;
    const isOrdered = !isUnsignedAbove(words, lower, lower + 4);
    for (let word = 0; word < 4; word += 1) {
      key[word] = words[(isOrdered ? lower : lower + 4) + word]!;
      key[4 + word] = words[(isOrdered ? lower + 4 : lower) + word]!;
    }
    key[8] = version;
    const mayAdd = !isNoise || this.#conversations.count < noiseMax;
    const record = mayAdd ? this.#conversations.locate() : this.#conversations.find();
    if (record < 0) return;
    const { sums } = this.#conversations;
    const isSame = isOrdered && !isUnsignedAbove(words, lower + 4, lower);
    const up = record * 4 + (isOrdered ? 0 : 2);
    const down = record * 4 + (isOrdered && !isSame ? 2 : 0);
    sums[up]! += packetsUp;
    sums[up + 1]! += bytesUp;
    sums[down]! += packetsDown;
    sums[down + 1]! += bytesDown;
  }

  /** Every conversation. */
  conversations(): ListedConversation[] {
    const { keys, sums, count } = this.#conversations;
    const listed: ListedConversation[] = [];
    for (let record = 0; record < count; record += 1) {
      const at = record * 9;
      const version = keys[at + 8]!;
      listed.push({
        a: formatWords(version, keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!),
        b: formatWords(version, keys[at + 4]!, keys[at + 5]!, keys[at + 6]!, keys[at + 7]!),
        packetsAToB: sums[record * 4]!,
        bytesAToB: sums[record * 4 + 1]!,
        packetsBToA: sums[record * 4 + 2]!,
        bytesBToA: sums[record * 4 + 3]!,
      });
    }
    return listed;
  }

  /** Lists the answer in `dnsMessage`, which `packet`'s source sent. */
  addAnswer(packet: Packet, querySeen: boolean): void {
    const p = packet;
    const chain: string[] = [];
    for (let i = 0; i < dnsMessage.chainLength; i += 1) chain.push(dnsName(dnsChain[i]!));
    const addresses = [];
    for (let i = 0; i < dnsMessage.addressCount; i += 1) {
      const at = i * 5;
      const [version, w0, w1, w2, w3] = dnsAddresses.subarray(at, at + 5);
      addresses.push({ address: formatWords(version!, w0!, w1!, w2!, w3!), ttl: dnsAddressTtls[i]! });
    }
    this.answers.push({
      client: { ip: formatWords(p.version, p.target0, p.target1, p.target2, p.target3), port: p.targetPort },
      server: { ip: formatWords(p.version, p.source0, p.source1, p.source2, p.source3), port: p.sourcePort },
      name: dnsName(0),
      cnameChain: chain,
      addresses,
      querySeen,
    });
  }

  #listFlow(words: Int32Array, sums: Float64Array, base: number, entry: SeenName): ListedFlow {
    const meta = words[base + Field.meta]!;
    const version = (meta >> 8) & 0xff;
    const protocol = meta & 0xff;
    const client = (words[base + Field.flags]! & Flag.clientIsHigher) !== 0 ? 1 : 0;
    const server = 1 - client;
    const serverEnd = listEnd(words, base, server, version, protocol);
    const named = entry.name < 0 ? -1 : this.#nameFor(words, base, entry);
    const domain = named < 0 ? -1 : this.#names.domain(named);
    return {
      protocol,
      client: listEnd(words, base, client, version, protocol),
      server: serverEnd,
      host: entry.name < 0 ? null : this.#names.host(entry.name),
      name: protocolLabel(protocol, version) ?? (domain < 0 ? serverEnd.ip : this.#names.host(domain)),
      evidence: evidenceText[entry.evidence] as ListedFlow['evidence'],
      tunnel: this.#tunnels.text(meta >>> 16) || null,
      clientPackets: words[base + Field.packets + client]!,
      clientBytes: sums[(base + Field.bytes) / 2 + client]!,
      serverPackets: words[base + Field.packets + server]!,
      serverBytes: sums[(base + Field.bytes) / 2 + server]!,
    };
  }

  /** An outer name gives way to the name under which the client looked the server up. */
  #nameFor(words: Int32Array, base: number, entry: SeenName): number {
    return evidenceText[entry.evidence] === 'tls_outer' ? words[base + Field.name]! - 1 : entry.name;
  }
}

function listEnd(
  words: Int32Array,
  base: number,
  side: number,
  version: number,
  protocol: number,
): ListedEnd {
  const at = base + side * 4;
  const ports = words[base + Field.ports]!;
  const port = side === 0 ? ports >>> 16 : ports & 0xffff;
  return {
    ip: formatWords(version, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!),
    // Fragments whose first never came have no ports.
    port: portProtocols.has(protocol) && ports !== 0 ? port : null,
  };
}

/** A name of the last DNS message; bytes that a terminal would act on are written as `\ddd`. */
function dnsName(index: number): string {
  let text = '';
  for (let i = 0; i < dnsNameLengths[index]!; i += 1) {
    const byte = dnsNames[index * 256 + i]!;
    const isPlain = byte > 0x20 && byte < 0x7f;
    text += isPlain ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
  }
  return text;
}

/** Numerical order of two addresses in words. */
function isUnsignedAbove(words: Int32Array, a: number, b: number): boolean {
  for (let word = 0; word < 4; word += 1) {
    if (words[a + word] !== words[b + word]) return words[a + word]! >>> 0 > words[b + word]! >>> 0;
  }
  return false;
}
