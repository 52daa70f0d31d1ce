/**
 * Counts frames, finds their flows, and closes the minutes.
 *
 * A packet costs one look-up: its flow. Addresses, usage rows and names receive the flow's counters when it is flushed,
 * at the end of the minute or when it leaves the table. So bytes from before a name was known go to that name.
 */

import { AddressGuard } from './address-guard.ts';
import { type CaptureOptions, type CaptureTotals, emptyTotals, type PacketTap } from './capture.ts';
import { decodeFrame } from './decode/decode-link.ts';
import { Fragments, hasPorts } from './decode/fragments.ts';
import { Packet, Protocol, Verdict } from './decode/packet.ts';
import { mayCarryPackets, openTunnel, TunnelPaths } from './decode/tunnels.ts';
import { FlowAccounting } from './flows/flow-accounting.ts';
import {
  beginAgain,
  exchangeOf,
  Field,
  Flag,
  flowWords,
  Meaning,
  noteMac,
  noteState,
  withoutSpoofed,
} from './flows/flow-record.ts';
import { FlowTable } from './flows/flow-table.ts';
import { KnownPackets } from './flows/known-packets.ts';
import { TouchedFlows } from './flows/touched-flows.ts';
import { compileLocalScope, type LocalRanges } from './local-scope.ts';
import { defaultOuterNames, FlowClassifier } from './names/flow-classifier.ts';
import { type NameTable, sweepNames } from './names/name-table.ts';
import { type OwnScan, OwnScans } from './own-scans.ts';
import type { FlowExport } from './reports/flow-export.ts';
import { Ledger } from './reports/ledger.ts';

const tunnelDepthMax = 6;
const ethernet = 1;
const inSum = -1;

export class Engine {
  readonly totals: CaptureTotals = emptyTotals();
  readonly ledger: Ledger;
  readonly flows: FlowTable;
  /** Milliseconds since the start of the open minute, plus one; and the second of the current frame. */
  offsetMs = 1;
  now = 0;

  readonly #names: NameTable;
  readonly #flowExport: FlowExport | null;
  readonly #accounting: FlowAccounting;
  readonly #classifier: FlowClassifier;
  readonly #fragments: Fragments;
  readonly #known: KnownPackets;
  readonly #packet = new Packet();
  readonly #inner = Array.from({ length: tunnelDepthMax }, () => new Packet());
  readonly #tunnels: TunnelPaths;
  #local!: LocalRanges;
  #guard: AddressGuard | null = null;
  #sweptAt = 0;
  /** The side that sent the last counted packet. */
  #side = 0;
  readonly #keepsOwners: boolean;
  #tap: PacketTap | null = null;
  /** What the last counted packet says of its flow, for the tap; `inSum`: the tap gets it with the flow's sum. */
  #exchange = 0;
  #ownScans: OwnScans | null = null;

  constructor(
    options: CaptureOptions,
    sizes: EngineSizes,
    names: NameTable,
    flowExport: FlowExport | null,
    key: readonly [number, number],
    tunnels = new TunnelPaths(),
  ) {
    this.#names = names;
    this.#flowExport = flowExport;
    this.#tunnels = tunnels;
    this.#keepsOwners = options.role === 'bridge';
    this.ledger = new Ledger(names, key[0], sizes.remoteHostsMax, sizes.usageRowsMax, sizes.noiseRowsMax);
    this.flows = new FlowTable({
      flowsMax: sizes.flowsMax,
      key,
      keepsOrder: flowExport !== null,
      onRemove: (base) => this.#end(base),
    });
    this.#known = new KnownPackets(this.flows, this.#keepsOwners);
    this.#accounting = new FlowAccounting({
      flows: this.flows,
      ledger: this.ledger,
      keepsOwners: this.#keepsOwners,
      noiseRowsMax: sizes.noiseRowsMax,
      onTruncated: (packets) => this.#onTruncated(packets),
    });
    this.#fragments = new Fragments((packet, bytes, packets) => this.#countHeld(packet, bytes, packets));
    this.#classifier = new FlowClassifier(
      {
        flows: this.flows,
        names,
        seed: key[1],
        buffersMax: sizes.buffersMax,
        queriesMax: sizes.queriesMax,
        answersMax: sizes.answersMax,
        outerNames: new Set(options.outerNames ?? defaultOuterNames),
        flowExport,
        knowsGuests: this.#keepsOwners && options.linkType === ethernet,
        flush: (base) => this.#account(base, false),
        restart: (base) => this.#restart(base),
        onTruncated: () => {
          if (flowExport !== null) flowExport.cut.names += 1;
          this.#onTruncated(1);
        },
      },
      this.#packet,
    );
    this.#setScope(options.local);
  }

  /** Counts one frame; the caller has set `now` and `offsetMs`. Interfaces of one file may have several link types. */
  observe(
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
    // A merged frame counts as the packets it was made of; 0 means an unknown number.
    const packets = segments > 0 ? segments : 1;
    if (segments === 0) totals.mergedFrames += 1;
    totals.packets += packets;
    const end = Math.min(offset + capturedLength, bytes.length);
    // How many packets a merged frame was is told only of frames that come one by one.
    if (linkType === ethernet && (segments !== 0 || this.#tap === null)) {
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
    if (this.#guard?.count(p, packets, this.now)) {
      this.#tap?.packet(p, packets, segments === 0, 0);
      return;
    }
    if (this.#ownScans?.count(p, packets, this.now)) return;
    // A later fragment gets ports here that are not its own, and may be held: it is told before it is counted.
    if (p.fragmentOffset > 0) this.#tap?.packet(p, packets, segments === 0, 0);
    if (p.isFragment) this.#observeFragment(p, packets);
    else this.#count(p, p.ipLength, packets, segments !== 0);
    if (p.fragmentOffset > 0) return;
    if (this.#exchange !== inSum) this.#tap?.packet(p, packets, segments === 0, this.#exchange);
  }

  /** Passes counted packets to this tap from now on; null: to none. */
  setTap(tap: PacketTap | null): void {
    this.#known.touched?.end();
    this.#tap = tap;
    this.#known.touched = tap && new TouchedFlows(this.flows, tap);
  }

  /** Tells the tap of everything that was counted so far. */
  settleTap(): void {
    this.#known.touched?.settleAll();
  }

  /** Keeps the traffic of these scans apart from now on. */
  setOwnScans(scans: readonly OwnScan[]): void {
    this.#ownScans = OwnScans.of(scans, this.flows, this.#keepsOwners, (base) => this.#judgeSides(base));
  }

  #setScope(local: CaptureOptions['local']): void {
    this.#local = compileLocalScope(local);
    const judgeSides = (base: number) => this.#judgeSides(base);
    const parts = { flows: this.flows, ledger: this.ledger, judgeSides };
    this.#guard = this.#keepsOwners ? AddressGuard.of(local.owners ?? [], parts) : null;
  }

  /** Replaces the local scope. */
  setLocal(local: CaptureOptions['local']): void {
    // The counters so far belong to the old scope.
    this.flushAll();
    this.#setScope(local);
    for (let base = 0; base < this.flows.highWater; base += flowWords) {
      if ((this.flows.words[base + Field.flags]! & Flag.alive) !== 0) this.#judgeSides(base);
    }
  }

  /**
   * Accounts the counters of every flow. Named and answered flows come first, so that a flood does not take their rows.
   */
  flushAll(): void {
    this.#fragments.flushPending();
    this.#accountOpenFlows(true);
    this.#accountOpenFlows(false);
  }

  /** Accounts the open flows that are named or answered, or the others. */
  #accountOpenFlows(isKnown: boolean): void {
    const { words, highWater } = this.flows;
    for (let base = 0; base < highWater; base += flowWords) {
      const flags = words[base + Field.flags]!;
      if ((flags & Flag.alive) === 0) continue;
      const isThis = (words[base + Field.name]! | (flags & Flag.answered)) !== 0;
      if (isThis === isKnown) this.#account(base, true);
    }
  }

  /** Exports every open flow (files only). */
  listOpenFlows(): void {
    const { words, highWater } = this.flows;
    for (let base = 0; base < highWater; base += flowWords) {
      if ((words[base + Field.flags]! & Flag.alive) === 0) continue;
      this.#list(base);
    }
  }

  /** Removes idle flows and unused names, after a minute was closed and its rows were read. */
  tidy(): void {
    this.flows.removeIdle(this.now);
    if (this.#names.isCrowded) this.#sweepNames();
  }

  /**
   * Removes unused names within a minute: when the table has grown by its limit, otherwise once a second. Files keep
   * all names.
   */
  #relieveNames(): void {
    if (this.#flowExport !== null || (!this.#names.hasGrown && this.now === this.#sweptAt)) return;
    this.#sweepNames();
  }

  #sweepNames(): void {
    this.#sweptAt = this.now;
    const { flows, ledger, now } = this;
    sweepNames({ flows, names: this.#names, classifier: this.#classifier, usage: ledger.usage, now });
  }

  #observeFragment(p: Packet, packets: number): void {
    const fragments = this.#fragments;
    const isWhole = fragments.add(p, this.now, 0);
    const releasedBytes = fragments.releasedBytes;
    const releasedPackets = fragments.releasedPackets;
    if (hasPorts(p.protocol) && p.fragmentOffset > 0 && !isWhole && fragments.hold(p, packets)) return;
    const base = this.#count(p, p.ipLength + releasedBytes, packets + releasedPackets, false);
    if (!isWhole) return;
    const { whole } = fragments;
    this.#inspect(whole, base, this.#side, 0, 0);
  }

  /** Fragments whose first fragment never came count on a flow without ports. */
  #countHeld(packet: Packet, bytes: number, packets: number): void {
    packet.sourcePort = packet.targetPort = 0;
    packet.tcpFlags = -1;
    packet.dataAt = packet.dataEnd = packet.payloadEnd = 0;
    packet.isFragment = true;
    packet.fragmentOffset = 8;
    packet.macAt = -1;
    this.#count(packet, bytes, packets, false);
  }

  /** Adds a packet to its flow and inspects its data. Returns the base of the flow. */
  #count(p: Packet, bytes: number, packets: number, maySum: boolean): number {
    const flows = this.flows;
    const base = flows.locate(p, 0, this.now);
    const { words, sums, side } = flows;
    if (flows.isNew) {
      this.#judgeSides(base);
      this.#classifier.onNewFlow(base, p, side, this.now);
    }
    this.#side = side;
    if (this.#keepsOwners && p.macAt >= 0) noteMac(words, base, side, p);
    // Before the counters are added: a handshake may restart the flow and a request may rename it, and both account the
    // earlier bytes.
    if (p.protocol === Protocol.tcp && this.#classifier.needsInspection(p, base, side))
      this.#inspect(p, base, side, 0, 0);
    const isSummed = this.#known.touched?.takes(base, side, p, maySum) ?? false;
    sums[((base + Field.bytes) >> 1) + side]! += bytes;
    words[base + Field.packets + side]! += packets;
    words[base + Field.lastSeen] = this.now;
    const before = words[base + Field.flags]!;
    const meaning = noteState(words, base, side, p);
    this.#exchange = isSummed ? inSum : exchangeOf(before, words[base + Field.flags]!, side, p.protocol);
    if ((meaning & Meaning.sending) !== 0) words[base + Field.lastSent + side] = this.offsetMs;
    if ((meaning & Meaning.end) !== 0) flows.noteEnd(base, this.now);
    // After the counters are added: a packet in the tunnel may need room and remove this flow. A fragmented datagram is
    // inspected when it is complete.
    if (p.protocol !== Protocol.tcp && !p.isFragment) this.#inspect(p, base, side, 0, 0);
    return base;
  }

  #inspect(p: Packet, base: number, side: number, tunnel: number, depth: number): void {
    if (p.protocol === Protocol.tcp) {
      if (p.tcpFlags >= 0) this.#classifier.inspect(p, base, side, this.now);
      return;
    }
    if (p.protocol === Protocol.udp) this.#classifier.inspect(p, base, side, this.now);
    if (depth < tunnelDepthMax && mayCarryPackets(p)) this.#lookInside(p, tunnel, depth);
  }

  /**
   * Reads names inside a tunnel. The inner flow has no bytes, because they count on the outer flow. Its usage row has a
   * name and no packets, and exists only when the name is known and one end is local.
   */
  #lookInside(outer: Packet, tunnel: number, depth: number): void {
    const inner = this.#inner[depth]!;
    const kind = openTunnel(outer, inner);
    if (kind === null) return;
    const path = this.#tunnels.id(tunnel, kind);
    let p = inner;
    if (inner.isFragment) {
      if (!this.#fragments.add(inner, this.now, path)) return;
      p = this.#fragments.whole;
    }
    const flows = this.flows;
    const base = flows.locate(p, path, this.now);
    const { side } = flows;
    flows.words[base + Field.lastSeen] = this.now;
    if (flows.isNew) {
      flows.words[base + Field.flags]! |= Flag.inner;
      this.#judgeSides(base);
      this.#classifier.onNewFlow(base, p, side, this.now);
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
    const sides = withoutSpoofed(words, base, this.#local.sides(version, words, base));
    // The two flags are adjacent, like the two bits.
    words[base + Field.flags] = flags | (sides * Flag.lowerIsLocal);
  }

  /** A new connection between the same two sockets. */
  #restart(base: number): void {
    this.#end(base);
    const { words, sums } = this.flows;
    beginAgain(words, sums, base);
  }

  /** The flow at `base` has ended, or leaves. */
  #end(base: number): void {
    this.#account(base, true);
    this.#classifier.forget(base);
    this.#list(base);
  }

  /** A file's reader has its own sums: it has no minutes, and its tables may be larger than memory. */
  #account(base: number, isLast: boolean): void {
    if ((this.flows.words[base + Field.flags]! & Flag.touched) !== 0) this.#known.touched!.settle(base);
    if (this.#flowExport === null) this.#accounting.account(base);
    else this.#flowExport.account(this.flows, base, isLast);
  }

  /** Exports a flow that has ended (files only). */
  #list(base: number): void {
    if (this.#flowExport === null) return;
    const { words, sums, serials } = this.flows;
    this.#flowExport.addFlow(words, sums, base, serials[base / flowWords]!);
  }

  #onTruncated(packets: number): void {
    this.totals.detailTruncated += packets;
  }
}

/** Sizes of an engine's tables. */
interface EngineSizes {
  flowsMax: number;
  buffersMax: number;
  queriesMax: number;
  answersMax: number;
  remoteHostsMax: number;
  usageRowsMax: number;
  /** Number of rows, addresses and conversations above which noise gets no new one. */
  noiseRowsMax: number;
}
