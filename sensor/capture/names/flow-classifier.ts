/**
 * Names flows by what a client said on the connection, or by what it looked up in DNS before.
 *
 * A name that the client spoke outranks one it looked up. A public name on an encrypted hello (ECH) belongs to the
 * provider and gives way to the looked-up name. The first spoken name stays, except that requests with different hosts
 * on one connection each get the bytes that follow them.
 */
import { type Packet, Protocol } from '../decode/packet.ts';
import { evidenceOf, Field, Flag, setName } from '../flows/flow-record.ts';
import type { FlowTable } from '../flows/flow-table.ts';
import { isFromServer } from '../flows/server-ports.ts';
import { mixHash } from '../keyed-table.ts';
import type { FlowExport } from '../reports/flow-export.ts';
import {
  DnsEvidence,
  dnsAddresses,
  dnsChainTtls,
  dnsMessage,
  dnsNames,
  pair,
  readDnsMessage,
} from './dns-evidence.ts';
import { type NameTable, normalizeHost } from './name-table.ts';
import { StreamInspector } from './stream-inspector.ts';
import { Evidence, Mode } from './stream-units.ts';

const dnsPort = 53;
/** There are public names of this length that begin with different characters. */
const severalStarts = 1;

export interface FlowClassifierOptions {
  flows: FlowTable;
  names: NameTable;
  seed: number;
  buffersMax: number;
  queriesMax: number;
  answersMax: number;
  /** Public names on encrypted hellos: they identify the provider that carries the traffic, not the site. */
  outerNames: ReadonlySet<string>;
  flowExport: FlowExport | null;
  /** MACs are those of guests and routers (bridges). */
  knowsGuests: boolean;
  /** Accounts the flow's counters under its present name. */
  flush(base: number): void;
  /** A connection ended, and a new one began between the same ends. */
  restart(base: number): void;
  /** A name found no room. */
  onTruncated(): void;
}

export class FlowClassifier {
  readonly #options: FlowClassifierOptions;
  readonly #words: Int32Array;
  readonly #inspector: StreamInspector;
  readonly #dns: DnsEvidence;
  /** The current packet and its time, for callbacks of the inspector. */
  #packet: Packet;
  #now = 0;
  /** The first character of the public names of each length, 0 for none. */
  readonly #outerStarts = new Uint8Array(256);
  /** Only on bridges, where MACs are those of guests. */
  readonly #guests: GuestMacs | null;
  /** MAC with VLAN of the current flow's client; zeros when unknown. */
  #macHigh = 0;
  #macLow = 0;

  constructor(options: FlowClassifierOptions, packet: Packet) {
    this.#options = options;
    this.#packet = packet;
    this.#words = options.flows.words;
    this.#dns = new DnsEvidence(options.queriesMax, options.answersMax, options.seed);
    for (const name of options.outerNames) {
      const start = this.#outerStarts[name.length];
      const first = name.charCodeAt(0);
      this.#outerStarts[name.length] = start === 0 || start === first ? first : severalStarts;
    }
    this.#guests = options.knowsGuests ? new GuestMacs(options.seed) : null;
    this.#inspector = new StreamInspector(this.#words, options.buffersMax, {
      onClient: (base, side) => this.setClient(base, side),
      onName: (base, side, evidence, length) => this.#onSpokenName(base, side, evidence, length),
      onDnsMessage: (base, side, bytes, from, end) => this.#onDnsMessage(base, side, bytes, from, end),
      onBufferTaken: () => options.onTruncated(),
    });
  }

  /**
   * Decides who the client of a new flow is and looks its server up in the DNS answers. A TCP opening or a DNS answer
   * shows the client; for other flows the ports do. Otherwise the client is the side that sends first.
   */
  onNewFlow(base: number, p: Packet, side: number, now: number): void {
    const flags = p.protocol === Protocol.tcp ? p.tcpFlags : 0;
    const isOpening = flags > 0 && (flags & 0x02) !== 0;
    const isServer = isOpening
      ? (flags & 0x10) !== 0
      : isDnsResponse(p) || isFromServer(p.sourcePort, p.targetPort, p.protocol === Protocol.tcp);
    const client = isServer ? 1 - side : side;
    if (client === 1) this.#words[base + Field.flags]! |= Flag.clientIsHigher;
    this.#nameByDns(base, client, p, side, now);
  }

  /** Reads the MAC of a local client: the source of a packet it sends, the target of an answer. */
  #readClientMac(
    guests: GuestMacs,
    base: number,
    p: Packet,
    side: number,
    client: number,
    now: number,
  ): void {
    const words = this.#words;
    if ((words[base + Field.flags]! & Flag.inner) !== 0 || !this.#isNear(base, client, p.version)) return;
    // In a frame the target's MAC comes first.
    const at = client === side ? p.macAt : p.macAt - 6;
    const high = p.view.getUint16(at) | (p.vlan << 16);
    const low = p.view.getInt32(at + 2);
    if (client === side) guests.note(high, low, p.version, words, base + side * 4, now);
    if (!guests.isOne(high, low, now)) return;
    this.#macHigh = high;
    this.#macLow = low;
  }

  /** False for TCP packets without new information: data of a side whose names are known, and bare acknowledgements. */
  needsInspection(p: Packet, base: number, side: number): boolean {
    if ((p.tcpFlags & 0x07) !== 0) return p.tcpFlags >= 0;
    return p.dataEnd > p.dataAt && (this.#words[base + Field.stream + side * 3 + 1]! & 0xff) !== Mode.done;
  }

  /** Reads the names in a packet of the flow. `side` sent it. */
  inspect(p: Packet, base: number, side: number, now: number): void {
    this.#packet = p;
    this.#now = now;
    if (p.protocol === Protocol.tcp) this.#inspectTcp(p, base, side);
    else if (p.dataEnd > p.dataAt && (p.sourcePort === dnsPort || p.targetPort === dnsPort)) {
      this.#onDnsMessage(base, side, p.bytes, p.dataAt, p.dataEnd);
    }
  }

  /** Releases the buffers of a flow that leaves the table. */
  forget(base: number): void {
    this.#inspector.forget(base);
  }

  /** This side is certainly the client; the server's data need not be read. */
  setClient(base: number, side: number): void {
    const words = this.#words;
    const flags = words[base + Field.flags]!;
    if ((flags & Flag.clientIsSure) !== 0) return;
    const cleared = flags & ~Flag.clientIsHigher;
    words[base + Field.flags] = cleared | Flag.clientIsSure | (side === 1 ? Flag.clientIsHigher : 0);
    this.#leaveAlone(base, 1 - side);
  }

  /** Marks the names in use before a sweep. */
  markNames(marks: Uint8Array, now: number): void {
    this.#dns.markNames(marks, now);
  }

  /** Applies the new ids of a sweep. */
  renumberNames(renumbered: Int32Array): void {
    this.#dns.renumberNames(renumbered);
  }

  #inspectTcp(p: Packet, base: number, side: number): void {
    if ((p.tcpFlags & 0x02) !== 0) this.#onHandshake(p, base, side);
    if (p.dataEnd > p.dataAt) this.#inspectData(p, base, side);
    // Missing segments will not come any more.
    if ((p.tcpFlags & 0x05) !== 0) this.#inspector.forget(base);
  }

  #inspectData(p: Packet, base: number, side: number): void {
    const words = this.#words;
    const stream = base + Field.stream + side * 3;
    const mode = words[stream + 1]! & 0xff;
    if (mode === Mode.done) return;
    const sequence = (p.tcpFlags & 0x02) !== 0 ? (p.sequence + 1) | 0 : p.sequence;
    if (mode === Mode.unseen) {
      const isDns = p.sourcePort === dnsPort || p.targetPort === dnsPort;
      const isServer =
        (words[base + Field.flags]! & Flag.clientIsSure) !== 0 &&
        ((words[base + Field.flags]! & Flag.clientIsHigher) !== 0) !== (side === 1);
      if (isServer && !isDns) {
        words[stream + 1] = Mode.done;
        return;
      }
      this.#inspector.expect(base, side, sequence, isDns ? Mode.dns : Mode.fresh);
    }
    this.#inspector.onData(base, side, sequence, p.bytes, p.dataAt, p.dataEnd);
  }

  #onHandshake(p: Packet, base: number, side: number): void {
    const words = this.#words;
    const isAnswer = (p.tcpFlags & 0x10) !== 0;
    const isDns = p.sourcePort === dnsPort || p.targetPort === dnsPort;
    const next = (p.sequence + 1) | 0;
    if (!isAnswer) {
      const flags = words[base + Field.flags]!;
      if ((flags & Flag.handshakeSeen) !== 0 && words[base + Field.initialSequence] !== p.sequence) {
        this.#options.restart(base);
        if (side === 1) words[base + Field.flags]! |= Flag.clientIsHigher;
        this.#nameByDns(base, side, p, side, this.#now);
      }
      words[base + Field.flags]! |= Flag.handshakeSeen;
      words[base + Field.initialSequence] = p.sequence;
    }
    this.setClient(base, isAnswer ? 1 - side : side);
    const stream = base + Field.stream + side * 3;
    if ((words[stream + 1]! & 0xff) === Mode.unseen) {
      this.#inspector.expect(base, side, next, isDns ? Mode.dns : isAnswer ? Mode.done : Mode.fresh);
    }
  }

  #leaveAlone(base: number, side: number): void {
    const stream = base + Field.stream + side * 3;
    const mode = this.#words[stream + 1]! & 0xff;
    if (mode !== Mode.dns && mode !== Mode.unseen) this.#inspector.expect(base, side, 0, Mode.done);
  }

  /** False for most names, at a lower cost than a look-up in the set. */
  #mayBeOuter(host: string): boolean {
    const start = this.#outerStarts[host.length]!;
    return start === host.charCodeAt(0) || start === severalStarts;
  }

  #onSpokenName(base: number, side: number, kind: number, length: number): void {
    const { names, flowExport, outerNames } = this.#options;
    const id = names.intern(length);
    if (id < 0) {
      this.#options.onTruncated();
      return;
    }
    const isOuter =
      kind === Evidence.sni && this.#mayBeOuter(names.host(id)) && outerNames.has(names.host(id));
    const evidence = isOuter ? Evidence.outer : kind;
    this.setClient(base, side);
    flowExport?.addName(base, evidence, id);
    const words = this.#words;
    const current = evidenceOf(words, base);
    const isFirst = current === Evidence.none || (current === Evidence.dns && evidence !== Evidence.outer);
    const isStronger = current === Evidence.outer && evidence > Evidence.outer;
    const isRequest = evidence === Evidence.host || evidence === Evidence.connect;
    const isNextRequest = isRequest && (current === Evidence.host || current === Evidence.connect);
    if (isNextRequest && names.domain(words[base + Field.name]! - 1) !== names.domain(id)) {
      this.#options.flush(base);
    } else if (!isFirst && !isStronger) return;
    setName(words, base, id, evidence);
  }

  /** Names the flow by what `client` looked up. Lookups of the server do not apply. `side` sent the packet. */
  #nameByDns(base: number, client: number, p: Packet, side: number, now: number): void {
    this.#macHigh = this.#macLow = 0;
    if (this.#guests !== null && p.macAt >= 0) this.#readClientMac(this.#guests, base, p, side, client, now);
    if (!this.#dns.hasAnswers) return;
    const words = this.#words;
    pair.version = p.version;
    for (let word = 0; word < 4; word += 1) {
      pair.client[word] = words[base + client * 4 + word]!;
      pair.server[word] = words[base + (1 - client) * 4 + word]!;
    }
    let name = this.#dns.nameOf(now);
    if (name < 0 && (this.#macHigh | this.#macLow) !== 0) {
      setGuest(this.#macHigh, this.#macLow);
      name = this.#dns.nameOf(now);
    }
    if (name < 0) return;
    setName(words, base, name, Evidence.dns);
  }

  /** Stores a question. For an answer to a stored question, stores its names for the client. */
  #onDnsMessage(base: number, side: number, bytes: Uint8Array, from: number, end: number): void {
    if (!readDnsMessage(bytes, from, end)) return;
    const p = this.#packet;
    const { isResponse } = dnsMessage;
    pair.version = p.version;
    pair.protocol = p.protocol;
    pair.ports = isResponse ? (p.targetPort << 16) | p.sourcePort : (p.sourcePort << 16) | p.targetPort;
    setWords(isResponse ? pair.server : pair.client, p.source0, p.source1, p.source2, p.source3);
    setWords(isResponse ? pair.client : pair.server, p.target0, p.target1, p.target2, p.target3);
    if (!isResponse) {
      this.#dns.rememberQuery(this.#now);
      return;
    }
    if (dnsMessage.responseCode !== 0 && dnsMessage.usefulRecords === 0) return;
    const wasAsked = this.#dns.wasAsked(this.#now);
    if (dnsMessage.usefulRecords > 0) this.#options.flowExport?.addAnswer(p, wasAsked);
    // An answer from another port is not from a resolver.
    if (wasAsked && dnsMessage.responseCode === 0 && p.sourcePort === dnsPort)
      this.#rememberAddresses(base, 1 - side);
  }

  #rememberAddresses(base: number, client: number): void {
    const length = normalizeHost(dnsNames, 0, dnsMessage.nameLength);
    if (length === 0 || dnsMessage.addressCount === 0) return;
    const id = this.#options.names.intern(length, true);
    if (id < 0) {
      this.#options.onTruncated();
      return;
    }
    const words = this.#words;
    const version = pair.version;
    const own = isLinkLocal(version, words, base + client * 4) ? 0 : version;
    for (let i = 0; i < dnsMessage.addressCount; i += 1) {
      const at = i * 5;
      const to = dnsAddresses[at]!;
      // For addresses of the other IP version the client's source address is unknown, because DNS does not show it.
      pair.version = to;
      if (to === own)
        for (let word = 0; word < 4; word += 1) pair.client[word] = words[base + client * 4 + word]!;
      else if (!this.#isGuest(base, client)) continue;
      setWords(
        pair.server,
        dnsAddresses[at + 1]!,
        dnsAddresses[at + 2]!,
        dnsAddresses[at + 3]!,
        dnsAddresses[at + 4]!,
      );
      const isRoomFree = this.#dns.rememberAddress(id, dnsChainTtls[i]!, this.#now);
      if (!isRoomFree) this.#options.onTruncated();
    }
  }

  /**
   * Puts the guest that asked into `pair`, by the source MAC of its question. Returns false when the MAC is not one
   * guest's.
   */
  #isGuest(base: number, client: number): boolean {
    const words = this.#words;
    const high = words[base + Field.mac + client * 2]!;
    const low = words[base + Field.mac + client * 2 + 1]!;
    const isConflict = (words[base + Field.flags]! & (Flag.macConflict << client)) !== 0;
    const version = (words[base + Field.meta]! >> 8) & 0xff;
    if ((high | low) === 0 || isConflict || !this.#isNear(base, client, version)) return false;
    if (this.#guests === null || !this.#guests.isOne(high, low, this.#now)) return false;
    setGuest(high, low);
    return true;
  }

  /** True for a local address, and for a link-local one, which no router forwards. */
  #isNear(base: number, side: number, version: number): boolean {
    const words = this.#words;
    if ((words[base + Field.flags]! & (Flag.lowerIsLocal << side)) !== 0) return true;
    return isLinkLocal(version, words, base + side * 4);
  }
}

/** A bit in the version that no address has: the client in `pair` is a MAC. */
const macVersion = 0x10;

/** Sets the client in `pair` to the guest with this MAC. */
function setGuest(high: number, low: number): void {
  pair.version |= macVersion;
  setWords(pair.client, 0, 0, high, low);
}

function setWords(target: Int32Array, w0: number, w1: number, w2: number, w3: number): void {
  target[0] = w0;
  target[1] = w1;
  target[2] = w2;
  target[3] = w3;
}

function isDnsResponse(p: Packet): boolean {
  if (p.protocol !== Protocol.udp || (p.sourcePort !== dnsPort && p.targetPort !== dnsPort)) return false;
  return p.dataEnd - p.dataAt >= 12 && (p.bytes[p.dataAt + 2]! & 0x80) !== 0;
}

// Finds the MACs of a bridge that stand for one guest each. A lookup from one address of the guest can then name its
// connections from another address (NET-2.2.3).
//
// A MAC belongs to one guest as long as it opens flows from one local IPv4 address and one IPv6 /64. A router's MAC
// does not, nor does one that another guest sends under; a contradiction disables the MAC for ten minutes.

const guestsMax = 1024;
const ways = 4;
const sets = guestsMax / ways;
/** Two words of MAC with VLAN, one of IPv4, two of IPv6, second of the last contradiction, used flag. */
const words = 7;
const doubtSeconds = 600;

class GuestMacs {
  readonly #seed: number;
  readonly #guests = new Int32Array(guestsMax * words);
  #next = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /**
   * Records that the MAC opens a flow from the local address at `at`. Every guest has link-local addresses, so they are
   * no contradiction.
   */
  note(high: number, low: number, version: number, address: Int32Array, at: number, now: number): void {
    const first = version === 4 ? address[at + 3]! : address[at]!;
    const second = version === 4 ? 0 : address[at + 1]!;
    const guests = this.#guests;
    const guest = this.#find(high, low) ?? this.#add(high, low, now);
    if (isLinkLocal(version, address, at)) return;
    const field = version === 4 ? guest + 2 : guest + 3;
    const isKnown = guests[field] !== 0 || (version === 6 && guests[field + 1] !== 0);
    const isSame = guests[field] === first && (version === 4 || guests[field + 1] === second);
    if (isSame) return;
    if (isKnown) guests[guest + 5] = now | 0;
    guests[field] = first;
    if (version === 6) guests[field + 1] = second;
  }

  /** True when the MAC is known and had no contradiction recently. */
  isOne(high: number, low: number, now: number): boolean {
    const guest = this.#find(high, low);
    return guest !== null && (now | 0) - this.#guests[guest + 5]! > doubtSeconds;
  }

  #set(high: number, low: number): number {
    return (mixHash(mixHash(this.#seed, high), low) & (sets - 1)) * ways * words;
  }

  #find(high: number, low: number): number | null {
    const set = this.#set(high, low);
    const guests = this.#guests;
    for (let guest = set; guest < set + ways * words; guest += words) {
      if (guests[guest] === high && guests[guest + 1] === low && guests[guest + 6] === 1) return guest;
    }
    return null;
  }

  /** Replaces the entries of a set in turn. */
  #add(high: number, low: number, now: number): number {
    this.#next = (this.#next + 1) % ways;
    const guest = this.#set(high, low) + this.#next * words;
    const guests = this.#guests;
    guests.fill(0, guest, guest + words);
    guests[guest] = high;
    guests[guest + 1] = low;
    guests[guest + 5] = (now | 0) - doubtSeconds - 1;
    guests[guest + 6] = 1;
    return guest;
  }
}

/** True for 169.254.0.0/16 and fe80::/10, which every guest may use. */
function isLinkLocal(version: number, address: Int32Array, at: number): boolean {
  if (version === 4) return address[at + 3]! >>> 16 === 0xa9fe;
  return address[at]! >>> 22 === 0x3fa;
}

/**
 * Public names on the outside of encrypted hellos (ECH): they identify the provider that carries the traffic, not the
 * site. The presence of the extension proves nothing, because browsers send it as GREASE with any name.
 */
export const defaultOuterNames: readonly string[] = [
  'cloudflare-ech.com',
  'crypto.cloudflare.com',
  'cloudflare-esni.com',
  'tls-ech.dev',
  'public.tls-ech.dev',
  'cover.defo.ie',
  'public-ech.example',
];
