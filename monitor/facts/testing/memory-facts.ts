/**
 * The rules of the fact store once more, in plain memory and without any cleverness: everything is kept as it came and
 * every answer is computed from all of it. What the real engines answer is compared with this.
 */
import { parseAddress } from '#common/ip/index.ts';
import type { TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';
import { evidenceCode, evidenceOf, vantageCode } from '../codes.ts';
import type { NameApplication } from '../collect-facts.ts';
import { explainRows } from '../explain-rows.ts';
import type * as facts from '../facts.ts';
import type { FactStore } from '../index.ts';
import { createMemoryRows, type HostRow, type MemoryRows, type UsageFact } from './memory-rows.ts';

export function createMemoryFacts(deps: {
  nameApplication: NameApplication;
  nowSecond: () => number;
}): FactStore {
  const rows = createMemoryRows(deps.nameApplication, deps.nowSecond);
  return {
    prepare: async () => {},
    append: async (_, uploads) => rows.append(uploads),
    rollUp: async () => {},
    readAddress: async (range) => readAddress(rows, range),
    explainAddress: async (range) => explainAddress(rows, range),
    sumSite: async (range) => sumSite(rows, range),
    listTopAddresses: async (range, limit) => listTopAddresses(rows, range, limit),
    listGaps: async (range, limit) => listGaps(rows, range, limit),
    listCaptures: async (siteId, since) => listCaptures(rows, siteId, since),
    listLosses: async (fromMinute, toMinute) => listLosses(rows, { fromMinute, toMinute }),
    sumCollection: async (range) => sumCollection(rows, range),
    newestMinutes: async () => newestMinutes(rows),
    readAddressApplications: async (range) => readAddressApplications(rows, range),
    rankApplications: async (range) => rankApplications(rows, range),
    stepApplications: async (range) => stepApplications(rows, range),
    readApplication: async (range) => readApplication(rows, range),
    listPairs: async (range, limit) => listPairs(rows, range, limit),
    sumDevices: async (range, keys) => ({
      items: keys.map((deviceKey) => ({ deviceKey, ...deviceBytes(owned(rows, range), deviceKey) })),
      sourceLimited: false,
    }),
    stepDevice: async (range) => stepDevice(rows, range),
    sumOwned: async (range) => {
      const wan = owned(rows, range).filter((one) => one.kind === 'wan');
      const bytes = (all: typeof wan) => sumOf(all, (one) => one.rxBytes + one.txBytes);
      return { bytes: bytes(wan), ownedBytes: bytes(wan.filter((one) => one.deviceKey !== '')) };
    },
  };
}

const sumOf = <T>(all: Iterable<T>, read: (one: T) => number) =>
  [...all].reduce((sum, one) => sum + read(one), 0);
const compare = <T extends string | number>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0);
const within = (range: { fromMinute: number; toMinute: number }) => (one: { minute: number }) =>
  one.minute >= range.fromMinute && one.minute < range.toMinute;
const nullsLast = <T extends string | number>(a: T | null, b: T | null) =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : compare(a, b);
const stepOf = (minute: number, stepSeconds: number) => Math.floor(minute / stepSeconds) * stepSeconds * 1000;

function compareAddresses(a: string, b: string): number {
  const [x, y] = [parseAddress(a)!, parseAddress(b)!];
  return x.length - y.length || Buffer.compare(x, y);
}

/** The chosen row of an address's minute comes first. */
function byStrength(a: HostRow, b: HostRow): number {
  return (
    b.rxBytes + b.txBytes - (a.rxBytes + a.txBytes) ||
    b.capture.observedMs - a.capture.observedMs ||
    a.capture.vantage - b.capture.vantage ||
    b.rxBytes - a.rxBytes ||
    a.capture.sensorId - b.capture.sensorId ||
    compare(a.capture.name, b.capture.name)
  );
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
  const hosts = rows.hosts(range.siteId).filter((host) => host.address === range.address);
  const inRange = hosts.filter(within(range));
  const before = hosts.filter(
    (one) => one.minute < range.fromMinute && one.minute >= range.fromMinute - 86_400,
  );
  const last = Math.max(...before.map((one) => one.minute));
  const knownCaptures = before.filter((one) => one.minute === last).map((one) => one.capture.captureId);
  const ids = new Set([...knownCaptures, ...inRange.map((one) => one.capture.captureId)]);
  const byMinute = [...Map.groupBy(inRange, (one) => one.minute)].sort(([a], [b]) => a - b);
  return {
    sightings: byMinute.map(([minute, all]) => {
      const chosen = all.toSorted(byStrength)[0]!;
      const { captureId, observedMs, totals } = chosen.capture;
      const { rxBytes, txBytes } = chosen;
      const packets = totals.mergedFrames > 0 ? null : chosen.packets;
      return { minute, captureId, rxBytes, txBytes, packets, observedMs, coverage: coverageOf(chosen, all) };
    }),
    seen: inRange
      .map(({ minute, capture }) => ({ minute, captureId: capture.captureId }))
      .sort((a, b) => a.minute - b.minute || a.captureId - b.captureId),
    knownCaptures: knownCaptures.sort((a, b) => a - b),
    listening: rows
      .captures(range.siteId)
      .filter((one) => within(range)(one) && ids.has(one.captureId))
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

function explainAddress(rows: MemoryRows, range: facts.AddressRange): facts.CaptureRow[] {
  const hosts = rows.hosts(range.siteId).filter((one) => one.address === range.address && within(range)(one));
  const byMinute = [...Map.groupBy(hosts, (one) => one.minute)].sort(([a], [b]) => a - b);
  return explainRows(
    byMinute.flatMap(([minute, all]) => {
      const chosen = all.toSorted(byStrength)[0]!;
      const others = all
        .filter((one) => one !== chosen)
        .sort(
          (a, b) =>
            b.rxBytes + b.txBytes - (a.rxBytes + a.txBytes) ||
            a.capture.sensorId - b.capture.sensorId ||
            compare(a.capture.name, b.capture.name),
        );
      return [chosen, ...others].map((one) => {
        const { captureId, sensorId, name, vantage, observedMs, totals } = one.capture;
        const { kernelDropped, parserDropped, detailTruncated, mergedFrames } = totals;
        const { rxBytes, txBytes, packets, deviceKey } = one;
        const role: facts.Vantage = vantage === 1 ? 'uplink' : 'bridge';
        const origin = { minute, captureId, sensorId, capture: name, role };
        const counted = { rxBytes, txBytes, packets, deviceKey, observedMs };
        const lost = { kernelDropped, parserDropped, detailTruncated, mergedFrames };
        return { ...origin, ...counted, ...lost, isChosen: one === chosen };
      });
    }),
  );
}

/** Rows after selection, the chosen one of each address and minute. */
function strongest(rows: MemoryRows, range: facts.SiteRange): HostRow[] {
  const inRange = rows.hosts(range.siteId).filter(within(range));
  return [...Map.groupBy(inRange, (one) => `${one.address} ${one.minute}`).values()].map((all) => ({
    ...all.toSorted(byStrength)[0]!,
    deviceKey: ownerOf(all),
  }));
}

/** Of one address and minute: what the captures that know an owner agree on. */
function ownerOf(all: readonly HostRow[]): string {
  const known = new Set(all.map((one) => one.deviceKey).filter((deviceKey) => deviceKey !== ''));
  return known.size === 1 && !all.some((one) => one.isDisputed) ? [...known][0]! : '';
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
  return [...Map.groupBy(strongest(rows, range), (one) => one.address)]
    .map(([address, all]) => ({
      address,
      rxBytes: sumOf(all, (one) => one.rxBytes),
      txBytes: sumOf(all, (one) => one.txBytes),
      packets: sumOf(all, (one) => one.packets),
      lastSeenMinute: Math.max(...all.map((one) => one.minute)),
    }))
    .sort((a, b) => b.rxBytes + b.txBytes - a.rxBytes - a.txBytes || compareAddresses(a.address, b.address))
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

/** The first capture of these rows by bytes. */
function strongestCapture(all: readonly UsageFact[]): UsageFact['capture'] {
  const captures = [...Map.groupBy(all, (one) => one.capture).entries()].map(
    ([capture, of]) => [capture, sumOf(of, (one) => one.inboundBytes + one.outboundBytes)] as const,
  );
  return captures.sort(
    ([a, x], [b, y]) => y - x || a.sensorId - b.sensorId || compare(a.name, b.name),
  )[0]![0];
}

function readAddressApplications(
  rows: MemoryRows,
  range: facts.AddressRange & { stepSeconds?: number },
): facts.AddressApplication[] {
  const startOf = (minute: number) => stepOf(minute, range.stepSeconds ?? 60) / 1000;
  const used = rows
    .usage(range.siteId)
    .filter((one) => within(range)(one) && one.local === range.address)
    .filter((one) => one.direction === 'outbound' || one.direction === 'inbound');
  const owned = [...Map.groupBy(used, (one) => `${one.minute} ${one.direction}`).values()].flatMap((all) => {
    const bytes = (capture: UsageFact['capture']) =>
      sumOf(
        all.filter((one) => one.capture === capture),
        (one) => one.inboundBytes + one.outboundBytes,
      );
    const uplinks = all.filter((one) => one.vantage === 1 && bytes(one.capture) > 0);
    const owner = strongestCapture(uplinks.length > 0 ? uplinks : all);
    return all.filter((one) => one.capture === owner);
  });
  const keyOf = (one: UsageFact) =>
    [startOf(one.minute), one.direction, one.name, one.protocol, one.serverPort].join('\n');
  return [...Map.groupBy(owned, keyOf).values()]
    .map((all) => {
      const { minute, direction, name, protocol, serverPort } = all[0]!;
      const sent = Math.max(...all.map((one) => one.lastSentMs));
      return {
        minute: startOf(minute),
        direction: direction as 'outbound' | 'inbound',
        name,
        protocol,
        serverPort,
        evidence: evidenceOf(Math.max(...all.map((one) => evidenceCode(one.evidence)))),
        isAttributed: all.some((one) => one.isAttributed),
        inboundBytes: sumOf(all, (one) => one.inboundBytes),
        outboundBytes: sumOf(all, (one) => one.outboundBytes),
        lastSentMs: sent > 0 ? sent : null,
      };
    })
    .sort(
      (a, b) =>
        a.minute - b.minute ||
        compare(a.direction, b.direction) ||
        compare(a.name, b.name) ||
        a.protocol - b.protocol ||
        nullsLast(a.serverPort, b.serverPort),
    );
}

interface JudgedFact extends UsageFact {
  owns: boolean;
}

/** Each fact with whether its capture counts: the owning vantage's strongest for this local address. */
function judged(rows: MemoryRows, range: facts.ViewRange): JudgedFact[] {
  const inView = rows
    .usage(range.siteId)
    .filter(within(range))
    .filter((one) => range.direction === null || one.direction === range.direction);
  return [...Map.groupBy(inView, (one) => `${one.minute} ${one.direction}`).values()].flatMap((all) => {
    const first = all[0]!.direction === 'internal' ? vantageCode('bridge') : vantageCode('uplink');
    const ofFirst = all.filter((one) => one.vantage === first);
    const hasBytes = ofFirst.some((one) => one.inboundBytes + one.outboundBytes > 0);
    const owner = hasBytes || ofFirst.length === all.length ? first : 3 - first;
    return [...Map.groupBy(all, (one) => one.local ?? '').values()].flatMap((ofLocal) => {
      const eligible = ofLocal.filter((one) => one.vantage === owner);
      const capture = eligible.length > 0 ? strongestCapture(eligible) : null;
      return ofLocal.map((one) => ({ ...one, owns: one.vantage === owner && one.capture === capture }));
    });
  });
}

const bytesOf = (all: readonly JudgedFact[], read: (one: JudgedFact) => number) => {
  const owning = all.filter((one) => one.owns);
  return owning.length > 0 ? sumOf(owning, read) : null;
};
const bothWays = (one: JudgedFact) => one.inboundBytes + one.outboundBytes;
const keyText = (one: facts.ApplicationKey) => [one.name, one.protocol, one.serverPort].join('\n');
const bytesFirst = (a: { bytes: number | null }, b: { bytes: number | null }) =>
  a.bytes === b.bytes ? 0 : a.bytes === null ? 1 : b.bytes === null ? -1 : b.bytes - a.bytes;

/** Pairs of judged facts, the busiest first. */
function pairsOf(rows: MemoryRows, all: readonly JudgedFact[]) {
  const young = all.filter((one) => rows.isYoung(one.minute));
  return [...Map.groupBy(young, (one) => `${one.client} ${one.server}`).values()]
    .map((of) => ({ client: of[0]!.client, server: of[0]!.server, bytes: bytesOf(of, bothWays) }))
    .sort(
      (a, b) =>
        bytesFirst(a, b) || compareAddresses(a.client, b.client) || compareAddresses(a.server, b.server),
    );
}

function rankApplications(rows: MemoryRows, range: facts.Ranking): facts.ApplicationUse {
  const all = [...Map.groupBy(judged(rows, range), keyText).values()]
    .filter((of) => of.some((one) => one.owns || one.isAttributed))
    .map((of): facts.ApplicationRow => {
      const { name, protocol, serverPort } = of[0]!;
      const owning = of.filter((one) => one.owns);
      const vantage = Math.min(...(owning.length > 0 ? owning : of).map((one) => one.vantage));
      const sent = Math.max(...of.map((one) => one.lastSentMs));
      const pairs = pairsOf(rows, of);
      return {
        name,
        protocol,
        serverPort,
        evidence: evidenceOf(Math.max(...of.map((one) => evidenceCode(one.evidence)))),
        isAttributed: of.some((one) => one.isAttributed),
        inboundBytes: bytesOf(of, (one) => one.inboundBytes),
        outboundBytes: bytesOf(of, (one) => one.outboundBytes),
        vantage: vantage === 1 ? 'uplink' : 'bridge',
        addresses: new Set(of.flatMap((one) => (one.local === null ? [] : [one.local]))).size,
        lastSentMs: sent > 0 ? sent : null,
        topConnection: pairs[0]
          ? { client: pairs[0].client, server: pairs[0].server, pairs: pairs.length }
          : null,
      };
    });
  const bytes = (row: facts.ApplicationRow) =>
    row.inboundBytes === null ? -1 : row.inboundBytes + row.outboundBytes!;
  const total = (of: readonly facts.ApplicationRow[]) => sumOf(of, (row) => Math.max(bytes(row), 0));
  all.sort(
    (a, b) =>
      bytes(b) - bytes(a) ||
      compare(a.name, b.name) ||
      a.protocol - b.protocol ||
      nullsLast(a.serverPort, b.serverPort),
  );
  const part = (range.nameContains ?? '').toLowerCase();
  const named = all.filter((row) => row.name.toLowerCase().includes(part));
  return {
    rows: named.slice(0, range.limit),
    total: named.length,
    bytes: total(all),
    domainBytes: total(all.filter((row) => row.evidence !== 'none')),
    portBytes: total(all.filter((row) => row.evidence === 'none' && row.isAttributed)),
  };
}

function stepApplications(
  rows: MemoryRows,
  range: facts.ViewRange & { stepSeconds: number; names: readonly string[] },
): facts.ApplicationStep[] {
  const owning = judged(rows, range).filter((one) => one.owns);
  const nameOf = (one: JudgedFact) => (range.names.includes(one.name) ? one.name : null);
  const groups = Map.groupBy(owning, (one) =>
    JSON.stringify([stepOf(one.minute, range.stepSeconds), nameOf(one)]),
  );
  return [...groups]
    .map(([key, all]) => {
      const [timeMs, name] = JSON.parse(key) as [number, string | null];
      return { timeMs, name, bytes: sumOf(all, bothWays) };
    })
    .filter((step) => step.bytes > 0)
    .sort((a, b) => a.timeMs - b.timeMs || nullsLast(a.name, b.name));
}

function readApplication(
  rows: MemoryRows,
  range: facts.ViewRange & facts.ApplicationKey,
): facts.ApplicationDetail {
  const used = judged(rows, range).filter((one) => keyText(one) === keyText(range));
  const young = used.filter((one) => rows.isYoung(one.minute));
  const isFallback = young.length === 0;
  const owners = new Map(
    strongest(rows, range).map((row) => [`${row.address} ${row.minute}`, row.deviceKey]),
  );
  const endOf = (one: JudgedFact) => {
    const deviceKey = owners.get(`${one.local} ${one.minute}`) || null;
    return JSON.stringify([deviceKey, deviceKey === null ? one.local : null]);
  };
  const ends = Map.groupBy(
    (isFallback ? used : young).filter((one) => one.local !== null),
    endOf,
  );
  const devices = [...ends]
    .map(([key, all]) => {
      const [deviceKey, address] = JSON.parse(key) as [string | null, string | null];
      return { deviceKey, address, bytes: bytesOf(all, bothWays) };
    })
    .sort(
      (a, b) =>
        bytesFirst(a, b) ||
        nullsLast(a.deviceKey, b.deviceKey) ||
        (a.address && b.address ? compareAddresses(a.address, b.address) : 0),
    );
  const destinations = [...Map.groupBy(young, (one) => one.server)]
    .map(([address, all]) => ({ address, bytes: bytesOf(all, bothWays) }))
    .sort((a, b) => bytesFirst(a, b) || compareAddresses(a.address, b.address));
  const pairs = pairsOf(rows, young);
  return {
    destinations: destinations.slice(0, 10),
    destinationCount: destinations.length,
    devices: devices.slice(0, 10),
    deviceCount: devices.length,
    pairs: pairs.slice(0, 5),
    pairCount: pairs.length,
    isFallback,
  };
}

function listPairs(rows: MemoryRows, range: facts.ViewRange, limit: number): facts.PairClassification[] {
  const inView = rows
    .usage(range.siteId)
    .filter(within(range))
    .filter((one) => rows.isYoung(one.minute))
    .filter((one) => range.direction === null || one.direction === range.direction);
  const keyOf = (one: UsageFact) =>
    [one.minute, one.direction, one.client, one.server, keyText(one), one.evidence].join('\n');
  return [...Map.groupBy(inView, keyOf).values()]
    .map((all) => {
      const { minute, direction, client, server, name, protocol, serverPort, evidence } = all[0]!;
      const captures = [...Map.groupBy(all, (one) => one.capture).values()].map((of) => ({
        clientBytes: sumOf(of, (one) => one.clientBytes),
        serverBytes: sumOf(of, (one) => one.serverBytes),
        packets: sumOf(of, (one) => one.packets),
      }));
      captures.sort(
        (a, b) =>
          b.clientBytes + b.serverBytes - a.clientBytes - a.serverBytes ||
          b.clientBytes - a.clientBytes ||
          b.packets - a.packets,
      );
      const key = { minute, direction, client, server, name, protocol, serverPort, evidence };
      return { ...key, ...captures[0]!, captures: captures.length };
    })
    .sort(
      (a, b) =>
        b.clientBytes + b.serverBytes - a.clientBytes - a.serverBytes ||
        b.minute - a.minute ||
        compareAddresses(a.client, b.client) ||
        compareAddresses(a.server, b.server) ||
        compare(a.name, b.name) ||
        a.protocol - b.protocol ||
        nullsLast(a.serverPort, b.serverPort) ||
        evidenceCode(a.evidence) - evidenceCode(b.evidence) ||
        directionRank(a.direction) - directionRank(b.direction),
    )
    .slice(0, limit);
}

const directionRank = (direction: TelemetryUsageRow['direction']) =>
  ['outbound', 'inbound', 'internal', 'transit'].indexOf(direction);

interface OwnedMinute {
  kind: 'wan' | 'lan';
  minute: number;
  deviceKey: string;
  rxBytes: number;
  txBytes: number;
}

/** What each address and minute adds to its owner, all of it and the internal part. */
function owned(rows: MemoryRows, range: facts.SiteRange): OwnedMinute[] {
  const wan = strongest(rows, range).map(({ minute, deviceKey, rxBytes, txBytes }) => {
    return { kind: 'wan' as const, minute, deviceKey, rxBytes, txBytes };
  });
  const lan: OwnedMinute[] = [];
  const internal = rows
    .hosts(range.siteId)
    .filter((one) => within(range)(one) && one.lanRxBytes + one.lanTxBytes > 0);
  for (const all of Map.groupBy(internal, (one) => one.minute).values()) {
    const owner = Math.max(...all.map((one) => one.capture.vantage));
    const eligible = all.filter((one) => one.capture.vantage === owner);
    for (const ofAddress of Map.groupBy(eligible, (one) => one.address).values()) {
      const asLan = ofAddress.map((one) => ({ ...one, rxBytes: one.lanRxBytes, txBytes: one.lanTxBytes }));
      const { minute, deviceKey, rxBytes, txBytes } = asLan.sort(byStrength)[0]!;
      lan.push({ kind: 'lan', minute, deviceKey, rxBytes, txBytes });
    }
  }
  return [...wan, ...lan];
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
