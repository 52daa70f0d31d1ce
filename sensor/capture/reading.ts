/**
 * Reads a whole capture file with the same engine: no minutes, but lists of all flows, conversations, addresses and
 * applications.
 *
 * Memory is bounded for files of any length: ended flows, and sums of many addresses, go to the caller's page file.
 */
import { formatWords } from './address-words.ts';
import type { CaptureOptions, CaptureTotals } from './capture.ts';
import { TunnelPaths } from './decode/tunnels.ts';
import { Engine } from './engine.ts';
import { Field } from './flows/flow-record.ts';
import { NameTable } from './names/name-table.ts';
import { randomKey } from './random-key.ts';
import { type CutCounts, FlowExport } from './reports/flow-export.ts';
import {
  ApplicationRows,
  ConversationRows,
  FlowRows,
  HostRows,
  type RawAnswer,
} from './reports/listed-rows.ts';
import { type PageFile, protocolLabel } from './reports/row-store.ts';

/** Ends, service and name of traffic that is about to be added to an application. */
export interface CountedUsage {
  client: string;
  server: string;
  protocol: number;
  serverPort: number;
  /** Registrable domain, protocol label or the server's address. */
  name: string;
}

export interface ReadingOptions {
  registrableDomain(host: string): string | null;
  /** Local addresses. With empty scopes, directions are relative to the client. */
  local: CaptureOptions['local'];
  /** An upper bound of the packets in the file, which also bounds the flows. */
  packetsMax: number;
  /** Called with every DNS answer; the answer is valid during the call. */
  onAnswer(answer: RawAnswer): void;
  /** Receives rows that do not fit into memory; null keeps everything in memory. */
  pageFile?: PageFile | null;
  /** False for usage that no application is made of. */
  countsUsage?: ((usage: CountedUsage) => boolean) | undefined;
}

export interface ReadingResult {
  totals: CaptureTotals;
  /** Counts of what was left out of the lists. */
  cut: Readonly<CutCounts>;
  flows: FlowRows;
  conversations: ConversationRows;
  hosts: HostRows;
  applications: ApplicationRows;
}

export type Reading = ReturnType<typeof createReading>;

/** Open flows. Above this number the least valuable ones are exported early. */
const flowsMax = 131_072;

/** Bytes of summed rows of each table that stay in memory. */
const residentBytes = 16 * 1024 * 1024;
const nowMax = 2 ** 30;

/** Starts reading a file. */
export function createReading(options: ReadingOptions) {
  const key = randomKey();
  const bound = 1 << Math.ceil(Math.log2(Math.min(flowsMax, Math.max(64, options.packetsMax))));
  const namesMax = Math.min(1 << 19, 1 << Math.ceil(Math.log2(Math.max(64, options.packetsMax))));
  const names = new NameTable(namesMax, key[0] ^ 0x5bd1e995, options.registrableDomain);
  const tunnels = new TunnelPaths();
  // Flows inside tunnels have records of their own.
  const flowsInTable = Math.min(flowsMax, bound * 2);
  const flowExport = new FlowExport({
    names,
    seed: key[0],
    flowsMax: flowsInTable,
    file: options.pageFile ?? null,
    onAnswer: options.onAnswer,
    countsUsage: options.countsUsage && usageTest(options.countsUsage, names),
  });
  const captureOptions: CaptureOptions = {
    name: 'file',
    role: 'file',
    linkType: 1,
    registrableDomain: options.registrableDomain,
    local: options.local,
  };
  const sizes = {
    flowsMax: flowsInTable,
    buffersMax: Math.min(2048, bound),
    queriesMax: Math.min(bound * 4, 1 << 18),
    answersMax: Math.max(1024, Math.min(bound, 1 << 18)),
    // The export keeps the addresses and rows of a file.
    remoteHostsMax: 1,
    usageRowsMax: 1,
    noiseRowsMax: 1,
  };
  let startSeconds = -1;
  let lastSeconds = -1;
  const engine = new Engine(captureOptions, sizes, names, flowExport, key, tunnels);
  return {
    /** Counters so far; always the same object. */
    totals: engine.totals,
    /** One frame, as in `Capture`, with the link type of its interface. */
    observe(
      bytes: Uint8Array,
      offset: number,
      capturedLength: number,
      wireLength: number,
      seconds: number,
      linkType: number,
    ) {
      if (seconds !== lastSeconds) {
        lastSeconds = seconds;
        if (startSeconds < 0) startSeconds = seconds;
        // Times in a file may have any value. The engine's times are 32-bit integers, of which it takes differences.
        engine.now = Math.max(-nowMax, Math.min(nowMax, Math.floor(seconds - startSeconds)));
      }
      engine.observe(linkType, bytes, offset, capturedLength, wireLength, -1, 1);
    },
    /** All results. Call once. */
    finish(): ReadingResult {
      engine.flushAll();
      engine.listOpenFlows();
      // A packet may have found no room in several tables; it counts once.
      engine.totals.detailTruncated = Math.min(engine.totals.detailTruncated, engine.totals.ipPackets);
      return {
        totals: engine.totals,
        cut: flowExport.cut,
        flows: new FlowRows(flowExport.flows, names, tunnels),
        conversations: new ConversationRows(flowExport.conversations.finish(residentBytes)),
        hosts: new HostRows(flowExport.hosts.finish(residentBytes)),
        applications: new ApplicationRows(flowExport.applications.finish(residentBytes), names),
      };
    },
  };
}

/** The caller's test, applied to rows of words. */
function usageTest(counts: (usage: CountedUsage) => boolean, names: NameTable) {
  return (words: Int32Array, base: number, client: number, name: number): boolean => {
    const meta = words[base + Field.meta]!;
    const version = (meta >> 8) & 0xff;
    const protocol = meta & 0xff;
    const ports = words[base + Field.ports]!;
    const addressOf = (at: number) =>
      formatWords(version, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
    const server = addressOf(base + (1 - client) * 4);
    return counts({
      client: addressOf(base + client * 4),
      server,
      protocol,
      serverPort: client === 0 ? ports & 0xffff : ports >>> 16,
      name: protocolLabel(protocol, version) ?? (name < 0 ? server : names.host(name)),
    });
  };
}
