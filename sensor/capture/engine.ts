/**
 * Takes frames, keeps the counters, and closes the minutes.
 *
 * A packet costs one look-up: its flow. Addresses, rows and names get their share when the flow is flushed, at the
 * minute's end or when it leaves the table, so bytes that came before a name was known go to that name.
 */

import { Booking } from './booking.ts';
import { decodeFrame } from './decode-link.ts';
import { beginAgain, Field, Flag, flowWords, Meaning, noteMac, noteState } from './flow-record.ts';
import { FlowTable } from './flow-table.ts';
import { Fragments, hasPorts } from './fragments.ts';
import type { CaptureOptions } from './index.ts';
import { KnownPackets } from './known-packets.ts';
import { Ledger } from './ledger.ts';
import type { Listing } from './listing.ts';
import { compileLocalScope, type LocalRanges } from './local-scope.ts';
import type { NameTable } from './name-table.ts';
import { Naming } from './naming.ts';
import { defaultOuterNames } from './outer-names.ts';
import { Packet, Protocol, Verdict } from './packet.ts';
import { emptyTotals, type Totals } from './totals.ts';
import { mayCarryPackets, openTunnel, TunnelPaths } from './tunnels.ts';

const tunnelDepthMax = 6;
const ethernet = 1;

/** Sizes of an engine's tables. */
export interface EngineSizes {
  flowsMax: number;
  buffersMax: number;
  queriesMax: number;
  answersMax: number;
  remoteHostsMax: number;
  usageRowsMax: number;
  /** Rows, addresses and conversations of which noise takes no new one. */
  noiseRowsMax: number;
}

export class Engine {
  readonly totals: Totals = emptyTotals();
  readonly ledger: Ledger;
  readonly flows: FlowTable;
  /** Milliseconds into the open minute, plus one, and the second of the frame at hand. */
  offsetMs = 1;
  now = 0;

  readonly #options: CaptureOptions;
  readonly #names: NameTable;
  readonly #listing: Listing | null;
  readonly #booking: Booking;
  readonly #naming: Naming;
  readonly #fragments: Fragments;
  readonly #known: KnownPackets;
  readonly #packet = new Packet();
  readonly #inner = Array.from({ length: tunnelDepthMax }, () => new Packet());
  readonly #tunnels: TunnelPaths;
  #local: LocalRanges;
  #sweptAt = 0;
  /** The side that sent the packet that was counted last. */
  #side = 0;
  readonly #keepsOwners: boolean;

  constructor(
    options: CaptureOptions,
    sizes: EngineSizes,
    names: NameTable,
    listing: Listing | null,
    key: readonly [number, number],
    tunnels = new TunnelPaths(),
  ) {
    this.#options = options;
    this.#names = names;
    this.#listing = listing;
    this.#tunnels = tunnels;
    this.#local = compileLocalScope(options.local);
    this.#keepsOwners = options.role === 'bridge';
    this.ledger = new Ledger(names, key[0], sizes.remoteHostsMax, sizes.usageRowsMax, sizes.noiseRowsMax);
    this.flows = new FlowTable({
      flowsMax: sizes.flowsMax,
      key,
      keepsOrder: listing !== null,
      onRemove: (base) => this.#onRemove(base),
    });
    this.#known = new KnownPackets(this.flows, this.#keepsOwners);
    this.#booking = new Booking({
      flows: this.flows,
      ledger: this.ledger,
      keepsOwners: this.#keepsOwners,
      noiseRowsMax: sizes.noiseRowsMax,
      onTruncated: (packets) => this.#onTruncated(packets),
    });
    this.#fragments = new Fragments((packet, bytes, packets) => this.#countHeld(packet, bytes, packets));
    this.#naming = new Naming(
      {
        flows: this.flows,
        names,
        seed: key[1],
        buffersMax: sizes.buffersMax,
        queriesMax: sizes.queriesMax,
        answersMax: sizes.answersMax,
        outerNames: new Set(options.outerNames ?? defaultOuterNames),
        listing,
        knowsGuests: this.#keepsOwners && options.linkType === ethernet,
        flush: (base) => this.#book(base, false),
        restart: (base) => this.#restart(base),
        onTruncated: () => this.#onNameTruncated(),
      },
      this.#packet,
    );
  }

  /** Counts one frame; the caller has set `now` and `offsetMs`. */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    vlanTci: number,
    segments: number,
  ): void {
    this.observeLink(this.#options.linkType, bytes, offset, capturedLength, wireLength, vlanTci, segments);
  }

  /** The same for a frame of another link type, as files with several interfaces have them. */
  observeLink(
    linkType: number,
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    vlanTci: number,
    segments: number,
  ): void {
    if (this.#names.isPressed) this.#relieveNames();
    const totals = this.totals;
    // A merged frame counts as the packets that it was made of; 0 says that nobody knows how many.
    const packets = segments > 0 ? segments : 1;
    if (segments === 0) totals.mergedFrames += 1;
    totals.packets += packets;
    const end = Math.min(offset + capturedLength, bytes.length);
    if (linkType === ethernet) {
      const length = this.#known.count(bytes, offset, end, vlanTci, packets, this.now, this.offsetMs);
      if (length > 0) {
        totals.ipPackets += packets;
        totals.ipBytes += length;
        return;
      }
    }
    const p = this.#packet;
    p.attach(bytes);
    p.end = end;
    p.wireEnd = Math.max(offset + wireLength, end);
    const verdict = decodeFrame(p, linkType, offset);
    if (verdict !== Verdict.ip) {
      if (verdict === Verdict.nonIp) totals.nonIpPackets += packets;
      else totals.parserDropped += packets;
      return;
    }
    if (vlanTci >= 0 && (vlanTci & 0xfff) !== 0) p.vlan = vlanTci & 0xfff;
    totals.ipPackets += packets;
    totals.ipBytes += p.ipLength;
    if (p.isFragment) this.#observeFragment(p);
    else this.#count(p, p.ipLength, packets);
  }

  /** Replaces the local scope. */
  setLocal(local: CaptureOptions['local']): void {
    // What was counted so far was counted under the old scope.
    this.flushAll();
    this.#local = compileLocalScope(local);
    for (let base = 0; base < this.flows.highWater; base += flowWords) {
      if ((this.flows.words[base + Field.flags]! & Flag.alive) !== 0) this.#judgeSides(base);
    }
  }

  /** Books what every flow moved; named and answered ones first, so that floods don't take their rows. */
  flushAll(): void {
    this.#fragments.flushPending();
    this.#bookOpenFlows(true);
    this.#bookOpenFlows(false);
  }

  /** Books the open flows that are named or answered, or the others. */
  #bookOpenFlows(isKnown: boolean): void {
    const { words, highWater } = this.flows;
    for (let base = 0; base < highWater; base += flowWords) {
      const flags = words[base + Field.flags]!;
      if ((flags & Flag.alive) === 0) continue;
      const isThis = (words[base + Field.name]! | (flags & Flag.answered)) !== 0;
      if (isThis === isKnown) this.#book(base, true);
    }
  }

  /** Lists every open flow (files only). */
  listOpenFlows(): void {
    const { words, highWater } = this.flows;
    for (let base = 0; base < highWater; base += flowWords) {
      if ((words[base + Field.flags]! & Flag.alive) === 0) continue;
      this.#list(base);
    }
  }

  /** Forgets idle flows and unused names, after a minute was closed and its rows were read. */
  tidy(): void {
    this.flows.removeIdle(this.now);
    if (this.#names.isCrowded) this.#sweepNames();
  }

  /** Forgets unused names within a minute: as often as many came, else once a second. Names of files are all listed. */
  #relieveNames(): void {
    if (this.#listing !== null || (!this.#names.hasGrown && this.now === this.#sweptAt)) return;
    this.#sweepNames();
  }

  #sweepNames(): void {
    this.#sweptAt = this.now;
    const { words, highWater } = this.flows;
    const marks = new Uint8Array(this.#names.count);
    this.#naming.markNames(marks, this.now);
    this.ledger.markNames(marks);
    for (let base = 0; base < highWater; base += flowWords) {
      const name = words[base + Field.name]! - 1;
      if ((words[base + Field.flags]! & Flag.alive) !== 0 && name >= 0) marks[name] = 1;
    }
    const renumbered = this.#names.sweep(marks);
    this.#naming.renumberNames(renumbered);
    this.ledger.renumberNames(renumbered);
    for (let base = 0; base < highWater; base += flowWords) {
      const name = words[base + Field.name]! - 1;
      if ((words[base + Field.flags]! & Flag.alive) !== 0 && name >= 0)
        words[base + Field.name] = renumbered[name]! + 1;
    }
  }

  #observeFragment(p: Packet): void {
    const fragments = this.#fragments;
    const isWhole = fragments.add(p, this.now);
    const releasedBytes = fragments.releasedBytes;
    const releasedPackets = fragments.releasedPackets;
    if (hasPorts(p.protocol) && p.fragmentOffset > 0 && !isWhole && fragments.hold(p)) return;
    const base = this.#count(p, p.ipLength + releasedBytes, 1 + releasedPackets);
    if (!isWhole) return;
    const { whole } = fragments;
    this.#inspect(whole, base, this.#side, 0, 0);
  }

  /** Fragments whose ports never came: they count on a flow without ports. */
  #countHeld(packet: Packet, bytes: number, packets: number): void {
    packet.sourcePort = packet.targetPort = 0;
    packet.tcpFlags = -1;
    packet.dataAt = packet.dataEnd = packet.payloadEnd = 0;
    packet.isFragment = true;
    packet.fragmentOffset = 8;
    packet.macAt = -1;
    this.#count(packet, bytes, packets);
  }

  /** Adds a packet to its flow and looks at what it says; the flow's base. */
  #count(p: Packet, bytes: number, packets: number): number {
    const flows = this.flows;
    const base = flows.locate(p, 0, this.now);
    const { words, sums, side } = flows;
    if (flows.isNew) {
      this.#judgeSides(base);
      this.#naming.onNewFlow(base, p, side, this.now);
    }
    this.#side = side;
    if (this.#keepsOwners && p.macAt >= 0) noteMac(words, base, side, p);
    // A handshake may start the flow anew and a request may rename it, which books what came before.
    if (p.protocol === Protocol.tcp && this.#naming.maySay(p, base, side)) this.#inspect(p, base, side, 0, 0);
    sums[((base + Field.bytes) >> 1) + side]! += bytes;
    words[base + Field.packets + side]! += packets;
    words[base + Field.lastSeen] = this.now;
    const meaning = noteState(words, base, side, p);
    if ((meaning & Meaning.sending) !== 0) words[base + Field.lastSent + side] = this.offsetMs;
    if ((meaning & Meaning.end) !== 0) flows.noteEnd(base, this.now);
    // What is found in a tunnel may need room, so this flow is complete before anybody looks inside. A datagram in
    // fragments is looked at when it is whole.
    if (p.protocol !== Protocol.tcp && !p.isFragment) this.#inspect(p, base, side, 0, 0);
    return base;
  }

  #inspect(p: Packet, base: number, side: number, tunnel: number, depth: number): void {
    if (p.protocol === Protocol.tcp) {
      if (p.tcpFlags >= 0) this.#naming.inspect(p, base, side, this.now);
      return;
    }
    if (p.protocol === Protocol.udp) this.#naming.inspect(p, base, side, this.now);
    if (depth < tunnelDepthMax && mayCarryPackets(p)) this.#lookInside(p, tunnel, depth);
  }

  /**
   * Names inside a tunnel; the flow in it has no bytes, because they count outside. Its row in a minute has a name and
   * no packets, and is there only when the name is known and one of its ends is local.
   */
  #lookInside(outer: Packet, tunnel: number, depth: number): void {
    const inner = this.#inner[depth]!;
    const kind = openTunnel(outer, inner);
    if (kind === null) return;
    const path = this.#tunnels.id(tunnel, kind);
    let p = inner;
    if (inner.isFragment) {
      if (!this.#fragments.add(inner, this.now)) return;
      p = this.#fragments.whole;
    }
    const flows = this.flows;
    const base = flows.locate(p, path, this.now);
    const { side } = flows;
    flows.words[base + Field.lastSeen] = this.now;
    if (flows.isNew) {
      flows.words[base + Field.flags]! |= Flag.inner;
      this.#judgeSides(base);
      this.#naming.onNewFlow(base, p, side, this.now);
    }
    const meaning = noteState(flows.words, base, side, p);
    if ((meaning & Meaning.sending) !== 0) flows.words[base + Field.lastSent + side] = this.offsetMs;
    if ((meaning & Meaning.end) !== 0) flows.noteEnd(base, this.now);
    this.#inspect(p, base, side, path, depth + 1);
  }

  #judgeSides(base: number): void {
    const words = this.flows.words;
    const version = (words[base + Field.meta]! >> 8) & 0xff;
    const flags = words[base + Field.flags]! & ~(Flag.lowerIsLocal | Flag.higherIsLocal);
    // The two flags lie side by side, as the two bits do.
    words[base + Field.flags] = flags | (this.#local.sides(version, words, base) * Flag.lowerIsLocal);
  }

  /** The same two sockets begin another connection. */
  #restart(base: number): void {
    this.#onRemove(base);
    const { words, sums } = this.flows;
    beginAgain(words, sums, base);
  }

  #onRemove(base: number): void {
    this.#book(base, true);
    this.#naming.forget(base);
    this.#list(base);
  }

  /** A file's reader sums up in its own way: it has no minutes, and its tables may be larger than memory. */
  #book(base: number, isLast: boolean): void {
    if (this.#listing === null) this.#booking.book(base);
    else this.#listing.book(this.flows, base, isLast);
  }

  /** Lists a flow that is over (files only). */
  #list(base: number): void {
    if (this.#listing === null) return;
    const { words, sums, serials } = this.flows;
    this.#listing.addFlow(words, sums, base, serials[base / flowWords]!);
  }

  #onNameTruncated(): void {
    if (this.#listing !== null) this.#listing.cut.names += 1;
    this.#onTruncated(1);
  }

  #onTruncated(packets: number): void {
    this.totals.detailTruncated += packets;
  }
}
