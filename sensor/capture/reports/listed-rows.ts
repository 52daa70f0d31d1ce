/**
 * The rows of a reading as text and numbers. Each object is created on request and belongs to the caller.
 */
import { formatWords } from '../address-words.ts';
import type { Packet } from '../decode/packet.ts';
import type { TunnelPaths } from '../decode/tunnels.ts';
import {
  dnsAddresses,
  dnsAddressTtls,
  dnsChain,
  dnsMessage,
  dnsNameLengths,
  dnsNames,
} from '../names/dns-evidence.ts';
import type { NameTable } from '../names/name-table.ts';
import { Evidence } from '../names/stream-units.ts';
import type { NameEvidence, WindowHost } from './minute-report.ts';
import { evidenceText, protocolLabel, type RowStore } from './row-store.ts';
import { keyAt } from './summing-table.ts';

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
  /** Tunnels around it, outermost first, joined by `/`. Its bytes count on the outer conversation. */
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
  /** The same client's question was seen before. */
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

/** Traffic of one name, protocol and server port. */
export interface ListedApplication {
  /** Registrable domain, protocol label or the remote address. */
  name: string;
  protocol: number;
  serverPort: number | null;
  inboundBytes: number;
  outboundBytes: number;
  packets: number;
}

/** Columns that rows may be ordered by, besides text. */
export type RowWeight = 'bytes' | 'packets' | 'sent' | 'received';

/** A row in its stored form: words and sums, valid until the next row is read. */
export interface RawRow {
  readonly words: Int32Array;
  readonly sums: Float64Array;
  readonly at: number;
}

/** Rows that are created on request. */
export interface TableRows<T> extends Iterable<T> {
  readonly count: number;
  at(row: number): T;
  weight(row: number, kind: RowWeight): number;
}

/** The same rows, with access to the stored form. */
export interface ListedRows<T> extends TableRows<T> {
  raw(row: number): RawRow;
}

/** Positions in a listed flow's row, in words; bytes are two doubles. */
export const FlowRow = {
  client: 0,
  server: 4,
  ports: 8,
  meta: 9,
  serial: 10,
  evidence: 11,
  bytes: 12,
  packets: 16,
  name: 18,
  /** Final name of the whole flow. */
  flowName: 19,
} as const;
export const flowRowWords = 20;

/** Above this number, rows stay in the order in which flows ended: sorting by start needs four bytes a row. */
const orderedMax = 1 << 23;
const portProtocols = new Set([6, 17, 132]);

abstract class Rows<T> implements ListedRows<T> {
  protected readonly rows: RowStore;

  constructor(rows: RowStore) {
    this.rows = rows;
  }

  get count(): number {
    return this.rows.count;
  }

  raw(row: number): RawRow {
    this.rows.seek(row);
    return this.rows;
  }

  abstract at(row: number): T;
  abstract weight(row: number, kind: RowWeight): number;

  *[Symbol.iterator](): Iterator<T> {
    for (let row = 0; row < this.count; row += 1) yield this.at(row);
  }
}

/** Flows in the order in which they began. */
export class FlowRows extends Rows<ListedFlow> {
  readonly #names: NameTable;
  readonly #tunnels: TunnelPaths;
  #order: Int32Array | null = null;

  constructor(rows: RowStore, names: NameTable, tunnels: TunnelPaths) {
    super(rows);
    this.#names = names;
    this.#tunnels = tunnels;
    if (rows.count <= orderedMax) this.#order = orderOf(rows);
  }

  override raw(row: number): RawRow {
    this.#seek(row);
    return this.rows;
  }

  at(row: number): ListedFlow {
    this.#seek(row);
    const { words, sums, at } = this.rows;
    const meta = words[at + FlowRow.meta]!;
    const version = (meta >> 8) & 0xff;
    const protocol = meta & 0xff;
    const ports = words[at + FlowRow.ports]!;
    // Fragments whose first fragment never came have no ports.
    const hasPorts = this.hasPorts(words, at);
    const serverIp = addressAt(words, at + FlowRow.server, version);
    const sum = (at + FlowRow.bytes) >> 1;
    return {
      protocol,
      client: { ip: addressAt(words, at + FlowRow.client, version), port: hasPorts ? ports >>> 16 : null },
      server: { ip: serverIp, port: hasPorts ? ports & 0xffff : null },
      host: this.host(words, at),
      name: this.name(words, at) ?? serverIp,
      evidence: this.evidence(words, at),
      tunnel: this.tunnel(words, at),
      clientPackets: words[at + FlowRow.packets]!,
      clientBytes: sums[sum]!,
      serverPackets: words[at + FlowRow.packets + 1]!,
      serverBytes: sums[sum + 1]!,
    };
  }

  /** Host as on the wire, or null. Like the functions below, it takes a raw row. */
  host(words: Int32Array, at: number): string | null {
    const host = words[at + FlowRow.name]! - 1;
    return host < 0 ? null : this.#names.host(host);
  }

  /** Protocol label or registrable domain; null when the server's address is the name. */
  name(words: Int32Array, at: number): string | null {
    const meta = words[at + FlowRow.meta]!;
    const label = protocolLabel(meta & 0xff, (meta >> 8) & 0xff);
    if (label !== null) return label;
    // A public name (ECH) gives way to the name that the client looked up.
    const isOuter = words[at + FlowRow.evidence] === Evidence.outer;
    const named = words[at + (isOuter ? FlowRow.flowName : FlowRow.name)]! - 1;
    const domain = named < 0 ? -1 : this.#names.domain(named);
    return domain < 0 ? null : this.#names.host(domain);
  }

  evidence(words: Int32Array, at: number): ListedFlow['evidence'] {
    return evidenceText[words[at + FlowRow.evidence]!] as ListedFlow['evidence'];
  }

  tunnel(words: Int32Array, at: number): string | null {
    return this.#tunnels.text(words[at + FlowRow.meta]! >>> 16) || null;
  }

  /** True where the protocol has ports and the flow's are known. */
  hasPorts(words: Int32Array, at: number): boolean {
    return words[at + FlowRow.ports] !== 0 && portProtocols.has(words[at + FlowRow.meta]! & 0xff);
  }

  weight(row: number, kind: RowWeight): number {
    this.#seek(row);
    const { words, sums, at } = this.rows;
    const sum = (at + FlowRow.bytes) >> 1;
    if (kind === 'packets') return words[at + FlowRow.packets]! + words[at + FlowRow.packets + 1]!;
    if (kind === 'bytes') return sums[sum]! + sums[sum + 1]!;
    return sums[kind === 'sent' ? sum : sum + 1]!;
  }

  /** True when the previous row shows the same connection and host, with other evidence. */
  continuesRowBefore(row: number): boolean {
    if (row === 0) return false;
    this.#seek(row);
    const serial = this.rows.words[this.rows.at + FlowRow.serial]!;
    const name = this.rows.words[this.rows.at + FlowRow.name]!;
    this.#seek(row - 1);
    const { words, at } = this.rows;
    return words[at + FlowRow.serial] === serial && words[at + FlowRow.name] === name;
  }

  #seek(row: number): void {
    this.rows.seek(this.#order ? this.#order[row]! : row);
  }
}

/** Row numbers ordered by the serial numbers of flows; rows of one flow stay together. */
function orderOf(rows: RowStore): Int32Array | null {
  const { count } = rows;
  const serials = new Int32Array(count);
  let last = -1;
  let isOrdered = true;
  for (let row = 0; row < count; row += 1) {
    rows.seek(row);
    const serial = rows.words[rows.at + FlowRow.serial]!;
    serials[row] = serial;
    if (serial < last) isOrdered = false;
    last = serial;
  }
  if (isOrdered) return null;
  // A serial number and its row fit into one double, and doubles sort faster than with a comparison function.
  const keys = new Float64Array(count);
  for (let row = 0; row < count; row += 1) keys[row] = serials[row]! * orderedMax + row;
  keys.sort();
  for (let row = 0; row < count; row += 1) serials[row] = keys[row]! % orderedMax;
  return serials;
}

/** Conversations in the order of their first packet. */
export class ConversationRows extends Rows<ListedConversation> {
  at(row: number): ListedConversation {
    this.rows.seek(row);
    const { words, sums, at } = this.rows;
    const sum = at >> 1;
    const key = at + keyAt(4);
    const version = words[key + 8]!;
    return {
      a: addressAt(words, key, version),
      b: addressAt(words, key + 4, version),
      packetsAToB: sums[sum]!,
      bytesAToB: sums[sum + 1]!,
      packetsBToA: sums[sum + 2]!,
      bytesBToA: sums[sum + 3]!,
    };
  }

  weight(row: number, kind: RowWeight): number {
    this.rows.seek(row);
    const { sums, at } = this.rows;
    const sum = at >> 1;
    if (kind === 'packets') return sums[sum]! + sums[sum + 2]!;
    if (kind === 'bytes') return sums[sum + 1]! + sums[sum + 3]!;
    return sums[kind === 'sent' ? sum + 1 : sum + 3]!;
  }
}

/** Rows whose sums are bytes in, bytes out and packets. */
abstract class CountedRows<T> extends Rows<T> {
  weight(row: number, kind: RowWeight): number {
    const { sums, at } = this.raw(row);
    const sum = at >> 1;
    if (kind === 'packets') return sums[sum + 2]!;
    if (kind === 'bytes') return sums[sum]! + sums[sum + 1]!;
    return sums[kind === 'sent' ? sum + 1 : sum]!;
  }
}

/** Addresses in the order of their first packet. */
export class HostRows extends CountedRows<WindowHost> {
  at(row: number): WindowHost {
    this.rows.seek(row);
    const { words, sums, at } = this.rows;
    const sum = at >> 1;
    const key = at + keyAt(3);
    return {
      address: addressAt(words, key, words[key + 4]!),
      rxBytes: sums[sum]!,
      txBytes: sums[sum + 1]!,
      packets: sums[sum + 2]!,
    };
  }
}

/** Positions in an application's row, in words. */
export const ApplicationRow = {
  /** The remote address of unnamed traffic, otherwise zeros. */
  address: keyAt(3),
  /** Protocol, and the address's version in the second byte, 0 for none. */
  meta: keyAt(3) + 4,
  serverPort: keyAt(3) + 5,
  name: keyAt(3) + 6,
} as const;

/** Applications, the largest first. */
export class ApplicationRows extends CountedRows<ListedApplication> {
  readonly #names: NameTable;
  readonly #order: Uint32Array;

  constructor(rows: RowStore, names: NameTable) {
    super(rows);
    this.#names = names;
    const bytes = new Float64Array(rows.count);
    for (let row = 0; row < rows.count; row += 1) {
      rows.seek(row);
      bytes[row] = rows.sums[rows.at >> 1]! + rows.sums[(rows.at >> 1) + 1]!;
    }
    this.#order = new Uint32Array(rows.count).map((_, row) => row);
    this.#order.sort((a, b) => bytes[b]! - bytes[a]! || a - b);
  }

  override raw(row: number): RawRow {
    this.rows.seek(this.#order[row]!);
    return this.rows;
  }

  at(row: number): ListedApplication {
    this.rows.seek(this.#order[row]!);
    const { words, sums, at } = this.rows;
    const sum = at >> 1;
    const meta = words[at + ApplicationRow.meta]!;
    const port = words[at + ApplicationRow.serverPort]!;
    return {
      name: this.name(words, at) ?? addressAt(words, at + ApplicationRow.address, meta >> 8),
      protocol: meta & 0xff,
      serverPort: port > 0 ? port : null,
      inboundBytes: sums[sum]!,
      outboundBytes: sums[sum + 1]!,
      packets: sums[sum + 2]!,
    };
  }

  /** Registrable domain or protocol label of a raw row; null when the address is the name. */
  name(words: Int32Array, at: number): string | null {
    const id = words[at + ApplicationRow.name]!;
    if (id >= 0) return this.#names.host(id);
    const meta = words[at + ApplicationRow.meta]!;
    // Only unnamed traffic has an address, and with it a version.
    return meta >> 8 === 0 ? protocolLabel(meta & 0xff, 4)! : null;
  }
}

function addressAt(words: Int32Array, at: number, version: number): string {
  return formatWords(version, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
}

// The last parsed DNS answer: its words in `dnsMessage` for output writers, and an object for filters and tables.

const nameMax = 256;

/** An answer as it was read; valid during the callback only. */
export interface RawAnswer {
  version: number;
  /** Four words of the client's address, then four of the server's. */
  readonly ends: Int32Array;
  clientPort: number;
  serverPort: number;
  querySeen: boolean;
  /** Names as on the wire, in lower case, without escapes: `nameLength(i)` bytes of `names` from `nameAt(i)` on. */
  readonly names: Uint8Array;
  /** Number of names on the chain, the asked one first; it is output even without a chain. */
  readonly chainLength: number;
  nameAt(position: number): number;
  nameLength(position: number): number;
  /** Version and four words of each address, and their TTLs. */
  readonly addressCount: number;
  readonly addresses: Int32Array;
  readonly ttls: Float64Array;
  /** A copy that stays valid. */
  make(): ListedAnswer;
}

class AnswerAtHand implements RawAnswer {
  version = 4;
  readonly ends = new Int32Array(8);
  clientPort = 0;
  serverPort = 0;
  querySeen = false;
  readonly names = dnsNames;
  readonly addresses = dnsAddresses;
  readonly ttls = dnsAddressTtls;

  /** Takes the answer in `dnsMessage`, sent by the source of `packet`. */
  take(packet: Packet, querySeen: boolean): void {
    const { ends } = this;
    this.version = packet.version;
    ends[0] = packet.target0;
    ends[1] = packet.target1;
    ends[2] = packet.target2;
    ends[3] = packet.target3;
    ends[4] = packet.source0;
    ends[5] = packet.source1;
    ends[6] = packet.source2;
    ends[7] = packet.source3;
    this.clientPort = packet.targetPort;
    this.serverPort = packet.sourcePort;
    this.querySeen = querySeen;
  }

  get chainLength(): number {
    return dnsMessage.chainLength;
  }

  get addressCount(): number {
    return dnsMessage.addressCount;
  }

  nameAt(position: number): number {
    return dnsChain[position]! * nameMax;
  }

  nameLength(position: number): number {
    return dnsNameLengths[dnsChain[position]!]!;
  }

  make(): ListedAnswer {
    const cnameChain = Array.from({ length: this.chainLength }, (_, i) => this.#name(i));
    const addresses = Array.from({ length: this.addressCount }, (_, i) => ({
      address: addressAt(dnsAddresses, i * 5 + 1, dnsAddresses[i * 5]!),
      ttl: dnsAddressTtls[i]!,
    }));
    return {
      client: { ip: addressAt(this.ends, 0, this.version), port: this.clientPort },
      server: { ip: addressAt(this.ends, 4, this.version), port: this.serverPort },
      name: this.#name(0),
      cnameChain,
      addresses,
      querySeen: this.querySeen,
    };
  }

  /** Control characters, which a terminal would act on, are written as `\ddd`. */
  #name(position: number): string {
    const at = this.nameAt(position);
    let text = '';
    for (let i = at; i < at + this.nameLength(position); i += 1) {
      const byte = dnsNames[i]!;
      text += isPlainByte(byte) ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
    }
    return text;
  }
}

/** The single current answer. */
export const answerAtHand = new AnswerAtHand();

/** True for bytes of names that are shown unchanged. */
export function isPlainByte(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f;
}
