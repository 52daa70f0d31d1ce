/**
 * The rules of the fact store once more, in plain memory and without any cleverness: everything is kept as it came and
 * every answer is computed from all of it. What the real engines answer is compared with this.
 */
import { isDeepStrictEqual } from 'node:util';
import { covers } from '#monitor/placements/index.ts';
import type { NameApplication } from '../../contract/collect-facts.ts';
import type { ControlScope } from '../../contract/control-scope.ts';
import type { FactStore } from '../../contract/fact-store.ts';
import * as facts from '../../contract/facts.ts';
import { explainRows } from '../../contract/facts.ts';
import type { HostRow } from './memory-append.ts';
import * as applications from './memory-applications.ts';
import { explore } from './memory-explore.ts';
import { findPeers, listPeerNetworks } from './memory-peers.ts';
import { createMemoryRows, type MemoryRows, type PlacementBook } from './memory-rows.ts';
import {
  chooseRow,
  compare,
  compareAddresses,
  type OwnedMinute,
  owned,
  ownSegmentOf,
  stepOf,
  strongest,
  sumOf,
  within,
} from './memory-selection.ts';

/** It stores facts in no scope of its caller: what it has taken stays when the scope is rolled back. */
export interface MemoryFacts extends FactStore {
  append(uploads: readonly facts.FactUpload[], scope?: ControlScope): Promise<void>;
}

export function createMemoryFacts(deps: {
  nameApplication: NameApplication;
  nowSecond: () => number;
  /** No server is anywhere where absent. */
  book?: PlacementBook;
}): MemoryFacts {
  const nowhere = { placementsOf: () => [], certainUntil: () => Number.POSITIVE_INFINITY };
  const rows = createMemoryRows(deps.nameApplication, deps.nowSecond, deps.book ?? nowhere);
  return {
    prepare: async () => {},
    append: async (uploads) => rows.append(uploads),
    rejudge: async () => {},
    rollUp: async () => {},
    readAddress: async (range) => readAddress(rows, range),
    readAddresses: async (ranges) => ranges.map((range) => readAddress(rows, range)),
    explainAddress: async (range) => explainAddress(rows, range),
    async listSpeakers(siteId, asked) {
      const wanted = new Set(asked.map(({ address, minute }) => `${address} ${minute}`));
      return rows
        .hosts(siteId)
        .filter(({ address, minute }) => wanted.has(`${address} ${minute}`))
        .map(({ address, minute, capture }) => ({ address, minute, captureId: capture.captureId }));
    },
    listForeign: async (range, limit) => listForeign(rows, range, limit),
    sumSite: async (range) => sumSite(rows, range),
    listTopAddresses: async (range, limit) => listTopAddresses(rows, range, limit),
    listGaps: async (range, limit) => listGaps(rows, range, limit),
    listCaptures: async (siteId, since) => listCaptures(rows, siteId, since),
    listLosses: async (fromMinute, toMinute) => listLosses(rows, { fromMinute, toMinute }),
    listOutages: async (since) => listOutages(rows, since),
    sumCollection: async (range) => sumCollection(rows, range),
    newestMinutes: async () => newestMinutes(rows),
    readAddressApplications: async (range) => applications.readAddressApplications(rows, range),
    async readAddressesApplications(ranges, rowsMax) {
      const found = ranges.map((range) => applications.readAddressApplications(rows, range));
      return found.flat().length > rowsMax ? null : found;
    },
    sumAddressApplications: async (range) => applications.sumAddressApplications(rows, range),
    rankApplications: async (range) => applications.rankApplications(rows, range),
    readApplication: async (range) => applications.readApplication(rows, range),
    listPairs: async (range, limit) => applications.listPairs(rows, range, limit),
    sumDevices: async (range, keys) => ({
      items: keys.map((deviceKey) => ({ deviceKey, ...deviceBytes(owned(rows, range), deviceKey) })),
      sourceLimited: false,
    }),
    stepDevice: async (range) => stepDevice(rows, range),
    explore: async (asked) => explore(rows, asked),
    exploreTogether: async (reading, views) => views.map((view) => explore(rows, { ...reading, ...view })),
    listPeerNetworks: async (range, limit) => listPeerNetworks(rows, range, limit),
    findPeers: async (range, limit) => findPeers(rows, range, limit),
  };
}

function coverageOf(row: HostRow, all: readonly HostRow[]): number | null {
  const { totals, observedMs } = row.capture;
  if (totals.parserDropped > 0) return null;
  if (all.some((one) => one.rxBytes > row.rxBytes || one.txBytes > row.txBytes)) return null;
  return listeningCoverage({ totals, observedMs });
}

function listeningCoverage(at: {
  totals: { packets: number; kernelDropped: number };
  observedMs: number;
}): number {
  const all = at.totals.packets + at.totals.kernelDropped;
  return (at.observedMs / 60_000) * (all > 0 ? at.totals.packets / all : 1);
}

function readAddress(rows: MemoryRows, range: facts.AddressRange): facts.AddressFacts {
  const ofAddress = rows.hosts(range.siteId).filter((host) => host.address === range.address);
  const hosts = ofAddress.filter((one) => isOfSegment(one, range));
  const inRange = hosts.filter(within(range));
  const before = hosts.filter(
    (one) => one.minute < range.fromMinute && one.minute >= range.fromMinute - 86_400,
  );
  const last = Math.max(...before.map((one) => one.minute));
  const knownCaptures = before.filter((one) => one.minute === last).map((one) => one.capture.captureId);
  const ids = new Set([...knownCaptures, ...inRange.map((one) => one.capture.captureId)]);
  const byMinute = [...Map.groupBy(ofAddress.filter(within(range)), (one) => one.minute)].sort(
    ([a], [b]) => a - b,
  );
  return {
    sightings: byMinute.flatMap(([minute, ofMinute]) => {
      const found = chooseRow(ofMinute, range.segment);
      if (!found) return [];
      const { row: chosen, all, delivered } = found;
      const { captureId, observedMs, totals } = chosen.capture;
      const { rxBytes, txBytes } = delivered;
      const packets = totals.mergedFrames > 0 ? null : delivered.packets;
      const coverage = coverageOf(chosen, all);
      const { ownScan } = chosen;
      const part = {
        ...facts.ownScanOf(ownScan.rxBytes, ownScan.txBytes, ownScan.packets),
        ...facts.droppedOf(delivered.dropped),
      };
      return [{ minute, captureId, rxBytes, txBytes, packets, observedMs, coverage, ...part }];
    }),
    seen: inRange
      .map(({ minute, capture }) => ({ minute, captureId: capture.captureId }))
      .sort((a, b) => a.minute - b.minute || a.captureId - b.captureId),
    knownCaptures: knownCaptures.sort((a, b) => a - b),
    listening: rows
      .captures(range.siteId)
      .filter((one) => within(range)(one) && ids.has(one.captureId) && maySaySilent(rows, range.address, one))
      .map(({ captureId, minute, observedMs, totals }) => ({
        captureId,
        minute,
        observedMs,
        coverage: totals.parserDropped > 0 ? null : listeningCoverage({ totals, observedMs }),
      }))
      .sort((a, b) => a.minute - b.minute || a.captureId - b.captureId),
    gaps: rows.captureGaps(range, ids),
  };
}

/** Its server was on the capture's node and on no other, which is certain by now. */
function maySaySilent(
  rows: MemoryRows,
  address: string,
  { sensorId, minute }: { sensorId: number; minute: number },
): boolean {
  return rows.book
    .placementsOf(sensorId, address)
    .filter((one) => covers(one, minute))
    .every((one) => one.speaks && !(one.isOpen && minute + 60 > rows.book.certainUntil()));
}

function listForeign(
  rows: MemoryRows,
  range: facts.SiteRange & { sensorId: number | null },
  limit: number,
): facts.ForeignAddress[] {
  const told = rows
    .foreignHosts(range.siteId)
    .filter((one) => within(range)(one) && (range.sensorId ?? one.capture.sensorId) === one.capture.sensorId);
  return [...Map.groupBy(told, (one) => `${one.capture.sensorId} ${one.address}`).values()]
    .map((all) => ({
      sensorId: all[0]!.capture.sensorId,
      address: all[0]!.address,
      minutes: new Set(all.map((one) => one.minute)).size,
      rxBytes: sumOf(all, (one) => one.rxBytes),
      txBytes: sumOf(all, (one) => one.txBytes),
      lastMinute: Math.max(...all.map((one) => one.minute)),
    }))
    .sort(
      (a, b) =>
        b.rxBytes + b.txBytes - a.rxBytes - a.txBytes ||
        a.sensorId - b.sensorId ||
        compareAddresses(a.address, b.address),
    )
    .slice(0, limit);
}

/** A capture's rows of a minute are of the segment that is asked about, or of none that is known. */
function isOfSegment(row: HostRow, { segment }: facts.AddressRange): boolean {
  return segment === undefined || ['', segment].includes(ownSegmentOf(row));
}

function explainAddress(rows: MemoryRows, range: facts.AddressRange): facts.CaptureRow[] {
  const isAsked = (one: HostRow) => one.address === range.address && within(range)(one);
  const foreign = new Set(rows.foreignHosts(range.siteId).filter(isAsked));
  const hosts = [...rows.hosts(range.siteId).filter(isAsked), ...foreign];
  const byMinute = [...Map.groupBy(hosts, (one) => one.minute)].sort(([a], [b]) => a - b);
  return explainRows(
    byMinute.flatMap(([minute, all]) => {
      const counted = all.filter((one) => !foreign.has(one));
      const chosen = chooseRow(counted, range.segment)?.row;
      const others = all
        .filter((one) => one !== chosen && isOfSegment(one, range))
        .sort(
          (a, b) =>
            Number(foreign.has(a)) - Number(foreign.has(b)) ||
            b.rxBytes + b.txBytes - (a.rxBytes + a.txBytes) ||
            a.capture.sensorId - b.capture.sensorId ||
            compare(a.capture.name, b.capture.name),
        );
      return [...(chosen ? [chosen] : []), ...others].map((one) => {
        const { captureId, sensorId, name, vantage, observedMs, totals } = one.capture;
        const { kernelDropped, parserDropped, detailTruncated, mergedFrames } = totals;
        const { rxBytes, txBytes, packets, deviceKey } = one;
        const role: facts.Vantage = vantage === 1 ? 'uplink' : 'bridge';
        const origin = { minute, captureId, sensorId, capture: name, role };
        const counted = { rxBytes, txBytes, packets, deviceKey, observedMs };
        const lost = { kernelDropped, parserDropped, detailTruncated, mergedFrames };
        return { ...origin, ...counted, ...lost, isChosen: one === chosen, isForeign: foreign.has(one) };
      });
    }),
  );
}

function sumSite(rows: MemoryRows, range: facts.SiteRange & { stepSeconds: number }): facts.SiteStep[] {
  const chosen = Map.groupBy(strongest(rows, range), (one) => one.minute);
  const minutes = new Set(
    rows
      .captures(range.siteId)
      .filter(within(range))
      .map((one) => one.minute),
  );
  const steps = [...Map.groupBy(minutes, (minute) => stepOf(minute, range.stepSeconds))].sort(
    ([a], [b]) => a - b,
  );
  return steps.map(([timeMs, minutes]) => {
    const of = (minute: number) => chosen.get(minute) ?? [];
    const all = minutes.flatMap(of);
    return {
      timeMs,
      rxBytes: sumOf(all, (one) => one.rxBytes),
      txBytes: sumOf(all, (one) => one.txBytes),
      packets: sumOf(all, (one) => one.packets),
      addresses: Math.max(...minutes.map((minute) => of(minute).length)),
      minutes: minutes.length,
    };
  });
}

function listTopAddresses(rows: MemoryRows, range: facts.SiteRange, limit: number): facts.TopAddress[] {
  return [...Map.groupBy(strongest(rows, range), (one) => `${one.address} ${one.segment}`).values()]
    .map((all) => ({
      address: all[0]!.address,
      segment: all[0]!.segment,
      rxBytes: sumOf(all, (one) => one.rxBytes),
      txBytes: sumOf(all, (one) => one.txBytes),
      packets: sumOf(all, (one) => one.packets),
      lastSeenMinute: Math.max(...all.map((one) => one.minute)),
    }))
    .sort(
      (a, b) =>
        b.rxBytes + b.txBytes - a.rxBytes - a.txBytes ||
        compareAddresses(a.address, b.address) ||
        compare(a.segment, b.segment),
    )
    .slice(0, limit);
}

function listGaps(rows: MemoryRows, range: facts.SiteRange, limit: number): facts.GapFact[] {
  return rows
    .gaps(range)
    .sort(
      (a, b) =>
        b.toMinute - a.toMinute ||
        b.fromMinute - a.fromMinute ||
        a.sensorId - b.sensorId ||
        compare(a.capture, b.capture) ||
        compare(a.reason, b.reason),
    )
    .filter((gap, i, sorted) => i === 0 || !isDeepStrictEqual(gap, sorted[i - 1]))
    .slice(0, limit);
}

function listCaptures(rows: MemoryRows, siteId: number, since: number): facts.CaptureFacts[] {
  return rows
    .knownCaptures(siteId)
    .map(({ captureId, sensorId, name, role }) => {
      const all = rows.captures(siteId).filter((one) => one.captureId === captureId);
      const late = all.filter((one) => one.minute >= since);
      const newest = Math.max(...all.map((one) => one.minute));
      return {
        captureId,
        sensorId,
        name,
        role,
        newestMinute: Number.isFinite(newest) ? newest : null,
        packets: sumOf(late, (one) => one.totals.packets),
        kernelDropped: sumOf(late, (one) => one.totals.kernelDropped),
        parserDropped: sumOf(late, (one) => one.totals.parserDropped),
        detailTruncated: sumOf(late, (one) => one.totals.detailTruncated),
        observedMs: sumOf(late, (one) => one.observedMs),
      };
    })
    .sort((a, b) => a.sensorId - b.sensorId || compare(a.name, b.name));
}

function listLosses(
  rows: MemoryRows,
  range: { fromMinute: number; toMinute: number },
): facts.CaptureLosses[] {
  const all = rows.sites().flatMap((siteId) => rows.knownCaptures(siteId));
  return all.map(({ captureId, sensorId, siteId, name }) => {
    const of = rows.captures(siteId).filter((one) => one.captureId === captureId && within(range)(one));
    return {
      captureId,
      sensorId,
      siteId,
      name,
      minutes: of.length,
      packets: sumOf(of, (one) => one.totals.packets),
      kernelDropped: sumOf(of, (one) => one.totals.kernelDropped),
      parserDropped: sumOf(of, (one) => one.totals.parserDropped),
    };
  });
}

function listOutages(rows: MemoryRows, since: number): facts.CaptureOutage[] {
  const latest = (minutes: number[]) => (minutes.length > 0 ? Math.max(...minutes) : null);
  return rows.sites().flatMap((siteId) =>
    rows.knownCaptures(siteId).map(({ captureId, sensorId, name, role }) => {
      const minutes = rows.captures(siteId).filter((one) => one.captureId === captureId);
      const gaps = rows
        .gaps({ siteId, fromMinute: since, toMinute: Number.POSITIVE_INFINITY })
        .filter(
          (gap) =>
            gap.sensorId === sensorId &&
            gap.reason === 'capture_failed' &&
            (gap.capture === '' || gap.capture === name),
        );
      return {
        ...{ captureId, sensorId, siteId, name, role },
        newestMinute: latest(minutes.map((one) => one.minute).filter((minute) => minute >= since)),
        failedThrough: latest(gaps.map((gap) => gap.toMinute).filter((minute) => minute >= since)),
      };
    }),
  );
}

function sumCollection(rows: MemoryRows, range: facts.SiteRange): facts.Collection {
  const all = rows.captures(range.siteId).filter(within(range));
  return {
    captureMinutes: all.length,
    packets: sumOf(all, (one) => one.totals.packets),
    kernelDropped: sumOf(all, (one) => one.totals.kernelDropped),
    parserDropped: sumOf(all, (one) => one.totals.parserDropped),
    detailTruncated: sumOf(all, (one) => one.totals.detailTruncated),
  };
}

function newestMinutes(rows: MemoryRows): Map<number, number> {
  const newest = new Map<number, number>();
  for (const siteId of rows.sites())
    newest.set(siteId, Math.max(...rows.captures(siteId).map((one) => one.minute)));
  return newest;
}

function deviceBytes(
  all: readonly OwnedMinute[],
  deviceKey: string,
): Pick<facts.DeviceTotals, 'wan' | 'lan'> {
  const own = all.filter((one) => one.deviceKey === deviceKey);
  if (own.length === 0) return { wan: null, lan: null };
  const sums = (kind: OwnedMinute['kind']) => {
    const of = own.filter((one) => one.kind === kind);
    return { rxBytes: sumOf(of, (one) => one.rxBytes), txBytes: sumOf(of, (one) => one.txBytes) };
  };
  return { wan: own.some((one) => one.kind === 'wan') ? sums('wan') : null, lan: sums('lan') };
}

function stepDevice(
  rows: MemoryRows,
  range: facts.SiteRange & { deviceKey: string; stepSeconds: number },
): facts.Limited<facts.DeviceStep> {
  const own = owned(rows, range).filter((one) => one.deviceKey === range.deviceKey);
  const steps = [...Map.groupBy(own, (one) => stepOf(one.minute, range.stepSeconds))].sort(
    ([a], [b]) => a - b,
  );
  const items = steps.map(([timeMs, all]) => ({ timeMs, ...deviceBytes(all, range.deviceKey) }));
  return { items, sourceLimited: false };
}
