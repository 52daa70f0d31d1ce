/**
 * Gives flows their names: what a client said on the connection, or what it asked DNS for before.
 *
 * A name that the client spoke beats one it looked up; an outer name that only the provider chose (encrypted hellos)
 * gives way to the looked-up one. The first spoken name stays, except that requests with different hosts on one
 * connection each get the bytes that follow them.
 */

import { DnsEvidence, pair } from './dns-evidence.ts';
import { dnsAddresses, dnsChainTtls, dnsMessage, dnsNames, readDnsMessage } from './dns-message.ts';
import { evidenceOf, Field, Flag, setName } from './flow-record.ts';
import type { FlowTable } from './flow-table.ts';
import { GuestMacs, isLinkLocal } from './guest-macs.ts';
import type { Listing } from './listing.ts';
import { type NameTable, normalizeHost } from './name-table.ts';
import { type Packet, Protocol } from './packet.ts';
import { isFromServer } from './server-ports.ts';
import { StreamInspector } from './stream-inspector.ts';
import { Evidence, Mode } from './stream-units.ts';

const dnsPort = 53;
/** Outer names of one length that begin with different characters. */
const severalStarts = 1;

export interface NamingOptions {
  flows: FlowTable;
  names: NameTable;
  seed: number;
  buffersMax: number;
  queriesMax: number;
  answersMax: number;
  /** Names that providers put on the outside of encrypted hellos: they say who carries the traffic, not whose it is. */
  outerNames: ReadonlySet<string>;
  listing: Listing | null;
  /** MACs are those of guests and routers (bridges). */
  knowsGuests: boolean;
  /** Books what a flow moved so far under the name it has. */
  flush(base: number): void;
  /** A connection is over and another one begins with the same ends. */
  restart(base: number): void;
  /** A name found no room. */
  onTruncated(): void;
}

export class Naming {
  readonly #options: NamingOptions;
  readonly #words: Int32Array;
  readonly #inspector: StreamInspector;
  readonly #dns: DnsEvidence;
  /** The packet at hand and its time, for what streams report back. */
  #packet: Packet;
  #now = 0;
  /** The first character of the outer names of each length, 0 where there are none. */
  readonly #outerStarts = new Uint8Array(256);
  /** Null but on bridges, where MACs are guests'. */
  readonly #guests: GuestMacs | null;
  /** MAC of the client of the flow at hand, with its VLAN; zeros where it says nothing. */
  #macHigh = 0;
  #macLow = 0;

  constructor(options: NamingOptions, packet: Packet) {
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
   * Decides who the client of a new flow is and looks its server up among the DNS answers. An opening says it, a DNS answer
   * does, and of what was begun before the ports do; else the client is who sends first.
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

  /** The MAC of a local client, from which an opening packet comes and to which an answer goes. */
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
    // The target's MAC comes first in a frame.
    const at = client === side ? p.macAt : p.macAt - 6;
    const high = p.view.getUint16(at) | (p.vlan << 16);
    const low = p.view.getInt32(at + 2);
    if (client === side) guests.note(high, low, p.version, words, base + side * 4, now);
    if (!guests.isOne(high, low, now)) return;
    this.#macHigh = high;
    this.#macLow = low;
  }

  /** False for a TCP packet that can tell nothing: most are data of a side whose names are known, or bare acknowledgements. */
  maySay(p: Packet, base: number, side: number): boolean {
    if ((p.tcpFlags & 0x07) !== 0) return p.tcpFlags >= 0;
    return p.dataEnd > p.dataAt && (this.#words[base + Field.stream + side * 3 + 1]! & 0xff) !== Mode.done;
  }

  /** Looks at what a packet of the flow says. `side` sent it. */
  inspect(p: Packet, base: number, side: number, now: number): void {
    this.#packet = p;
    this.#now = now;
    if (p.protocol === Protocol.tcp) this.#inspectTcp(p, base, side);
    else if (p.dataEnd > p.dataAt && (p.sourcePort === dnsPort || p.targetPort === dnsPort)) {
      this.#onDnsMessage(base, side, p.bytes, p.dataAt, p.dataEnd);
    }
  }

  /** Gives back what a leaving flow borrowed. */
  forget(base: number): void {
    this.#inspector.forget(base);
  }

  /** This side is the client, for certain; the server's data need not be read. */
  setClient(base: number, side: number): void {
    const words = this.#words;
    const flags = words[base + Field.flags]!;
    if ((flags & Flag.clientIsSure) !== 0) return;
    const cleared = flags & ~Flag.clientIsHigher;
    words[base + Field.flags] = cleared | Flag.clientIsSure | (side === 1 ? Flag.clientIsHigher : 0);
    this.#leaveAlone(base, 1 - side);
  }

  /** Marks the names in use, before a sweep. */
  markNames(marks: Uint8Array, now: number): void {
    this.#dns.markNames(marks, now);
  }

  /** Takes over the ids of a sweep. */
  renumberNames(renumbered: Int32Array): void {
    this.#dns.renumberNames(renumbered);
  }

  #inspectTcp(p: Packet, base: number, side: number): void {
    if ((p.tcpFlags & 0x02) !== 0) this.#onHandshake(p, base, side);
    if (p.dataEnd > p.dataAt) this.#inspectData(p, base, side);
    // Whatever is missing will not come any more.
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

  /** False for most names, at less cost than a look into the set. */
  #mayBeOuter(host: string): boolean {
    const start = this.#outerStarts[host.length]!;
    return start === host.charCodeAt(0) || start === severalStarts;
  }

  #onSpokenName(base: number, side: number, kind: number, length: number): void {
    const { names, listing, outerNames } = this.#options;
    const id = names.intern(length);
    if (id < 0) {
      this.#options.onTruncated();
      return;
    }
    const isOuter =
      kind === Evidence.sni && this.#mayBeOuter(names.host(id)) && outerNames.has(names.host(id));
    const evidence = isOuter ? Evidence.outer : kind;
    this.setClient(base, side);
    listing?.addName(base, evidence, id);
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

  /** Names the flow by what `client` looked up; what the other side may have asked for says nothing about it. `side` sent. */
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

  /** A question is remembered, an answer to one gives its client names for the addresses in it. */
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
    if (dnsMessage.usefulRecords > 0) this.#options.listing?.addAnswer(p, wasAsked);
    // Whoever answers from another port is no resolver.
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
      // A client opens connections of another kind than its question's from an address that DNS never showed.
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

  /** Puts the guest that asked into `pair`, by the MAC of its own question; false when that tells none. */
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

  /** True for a local address, and for one that no router passes on. */
  #isNear(base: number, side: number, version: number): boolean {
    const words = this.#words;
    if ((words[base + Field.flags]! & (Flag.lowerIsLocal << side)) !== 0) return true;
    return isLinkLocal(version, words, base + side * 4);
  }
}

/** A bit of a version that no address has: the client in `pair` is a MAC. */
const macVersion = 0x10;

/** Makes the client in `pair` the guest with this MAC. */
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
