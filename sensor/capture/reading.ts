/**
 * Reads a whole capture file through the same engine: no minutes, nothing evicted as long as the file is of a
 * sensible size, and a list of everything that was found.
 */
import { Engine } from './engine.ts';
import type { CaptureOptions } from './index.ts';
import { type ListedAnswer, type ListedConversation, type ListedFlow, Listing } from './listing.ts';
import { randomKey } from './minute-capture.ts';
import type { HostCounters, UsageRow } from './minute-report.ts';
import { NameTable } from './name-table.ts';
import type { Totals } from './totals.ts';
import { TunnelPaths } from './tunnels.ts';

export interface ReadingOptions {
  registrableDomain(host: string): string | null;
  /** Which addresses are local; empty scopes make every application's traffic relative to its client. */
  local: CaptureOptions['local'];
  /** An upper bound of packets in the file: no more flows than that can occur. */
  packetsMax: number;
}

export interface ReadingResult {
  totals: Totals;
  flows: ListedFlow[];
  answers: ListedAnswer[];
  conversations: ListedConversation[];
  hosts: HostCounters[];
  usage: UsageRow[];
}

export interface Reading {
  /** One frame, as in `Capture`, with the link type of its interface. */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    seconds: number,
    linkType: number,
  ): void;
  /** What was counted so far; the same object throughout. */
  readonly totals: Readonly<Totals>;
  /** Everything that was found. Call once. */
  finish(): ReadingResult;
}

/** Flows that are open at once; beyond that the least worth keeping are listed early. */
const flowsMax = 131_072;

/** Starts reading a file. */
export function createReading(options: ReadingOptions): Reading {
  const key = randomKey();
  const bound = 1 << Math.ceil(Math.log2(Math.min(flowsMax, Math.max(64, options.packetsMax))));
  const namesMax = Math.min(1 << 19, 1 << Math.ceil(Math.log2(Math.max(64, options.packetsMax))));
  const names = new NameTable(namesMax, key[0] ^ 0x5bd1e995, options.registrableDomain);
  const tunnels = new TunnelPaths();
  const listing = new Listing(names, key[0], tunnels);
  const captureOptions: CaptureOptions = {
    name: 'file',
    role: 'file',
    linkType: 1,
    registrableDomain: options.registrableDomain,
    local: options.local,
  };
  const sizes = {
    // Flows inside tunnels have records of their own.
    flowsMax: Math.min(flowsMax, bound * 2),
    buffersMax: Math.min(2048, bound),
    queriesMax: Math.min(bound * 4, 1 << 18),
    answersMax: Math.max(1024, Math.min(bound, 1 << 18)),
    remoteHostsMax: 1 << 22,
    usageRowsMax: 1 << 20,
    noiseRowsMax: 1 << 14,
  };
  const engine = new Engine(captureOptions, sizes, names, listing, key, tunnels);
  return {
    totals: engine.totals,
    observe(bytes, offset, capturedLength, wireLength, seconds, linkType) {
      engine.now = seconds;
      engine.observeLink(linkType, bytes, offset, capturedLength, wireLength, -1, 1);
    },
    finish() {
      engine.flushAll();
      engine.listOpenFlows();
      listing.sortFlows();
      // A packet may have found no room in several tables: it is still one.
      engine.totals.detailTruncated = Math.min(engine.totals.detailTruncated, engine.totals.ipPackets);
      return {
        totals: engine.totals,
        flows: listing.flows,
        answers: listing.answers,
        conversations: listing.conversations(),
        hosts: engine.ledger.hostRows('file', false).rows,
        usage: engine.ledger.usageRows(0, Number.POSITIVE_INFINITY).rows,
      };
    },
  };
}
