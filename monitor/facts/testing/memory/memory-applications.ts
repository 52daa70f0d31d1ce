/** The rules of applications in plain memory: who counts, and what is told of names, pairs and addresses. */
import type { TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';
import { evidenceCode, evidenceOf, vantageCode } from '../../contract/codes.ts';
import type * as facts from '../../contract/facts.ts';
import type { UsageFact } from './memory-append.ts';
import type { MemoryRows } from './memory-rows.ts';
import {
  compare,
  compareAddresses,
  nullsLast,
  resolveSegments,
  strongest,
  sumOf,
  within,
} from './memory-selection.ts';

/** The first capture of these rows by bytes. */
function strongestCapture(all: readonly UsageFact[]): UsageFact['capture'] {
  const captures = [...Map.groupBy(all, (one) => one.capture).entries()].map(
    ([capture, of]) => [capture, sumOf(of, (one) => one.inboundBytes + one.outboundBytes)] as const,
  );
  return captures.sort(
    ([a, x], [b, y]) => y - x || a.sensorId - b.sensorId || compare(a.name, b.name),
  )[0]![0];
}

/** What named these, the strongest, and when they were last sent. */
function namedBy(
  all: readonly UsageFact[],
): Pick<facts.AddressUse, 'evidence' | 'isAttributed' | 'lastSentMs'> {
  const sent = Math.max(...all.map((one) => one.lastSentMs));
  return {
    evidence: evidenceOf(Math.max(...all.map((one) => evidenceCode(one.evidence)))),
    isAttributed: all.some((one) => one.isAttributed),
    lastSentMs: sent > 0 ? sent : null,
  };
}

export function readAddressApplications(
  rows: MemoryRows,
  range: facts.AddressRange,
): facts.AddressApplication[] {
  const used = rows
    .usage(range.siteId)
    .filter((one) => within(range)(one) && one.local === range.address)
    .filter((one) => range.segment === undefined || ['', range.segment].includes(one.ownSegment))
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
    [one.minute, one.direction, one.name, one.protocol, one.serverPort].join('\n');
  return [...Map.groupBy(owned, keyOf).values()]
    .map((all) => {
      const { minute, direction, name, protocol, serverPort } = all[0]!;
      return {
        minute,
        direction: direction as 'outbound' | 'inbound',
        name,
        protocol,
        serverPort,
        ...namedBy(all),
        inboundBytes: sumOf(all, (one) => one.inboundBytes),
        outboundBytes: sumOf(all, (one) => one.outboundBytes),
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

export interface JudgedFact extends UsageFact {
  owns: boolean;
  segment: string;
}

/** Each fact with whether its capture counts: the owning vantage's strongest for this local address. */
export function judged(rows: MemoryRows, range: facts.ViewRange): JudgedFact[] {
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
      const captures = [...Map.groupBy(eligible, (one) => one.capture).entries()];
      const ownOf = (of: readonly UsageFact[]) =>
        of
          .map((one) => one.ownSegment)
          .sort()
          .at(-1) ?? '';
      const resolved = resolveSegments(
        captures,
        ([, of]) => ownOf(of),
        captures.map(([, of]) => ownOf(of)),
      );
      // Of each segment the strongest capture.
      const owners = new Map<UsageFact['capture'], string>();
      for (const [segment, ofSegment] of Map.groupBy(captures, (one) => resolved.get(one) ?? null))
        if (segment !== null) owners.set(strongestCapture(ofSegment.flatMap(([, of]) => of)), segment);
      return ofLocal.map((one) => {
        const segment = one.vantage === owner ? owners.get(one.capture) : undefined;
        return { ...one, owns: segment !== undefined, segment: segment ?? one.ownSegment };
      });
    });
  });
}

const bytesOf = (all: readonly JudgedFact[], read: (one: JudgedFact) => number) => {
  const owning = all.filter((one) => one.owns);
  return owning.length > 0 ? sumOf(owning, read) : null;
};
export function sumAddressApplications(rows: MemoryRows, range: facts.AddressRange): facts.AddressUse[] {
  const used = judged(rows, { ...range, direction: null })
    .filter(
      (one) => one.local === range.address && (one.direction === 'outbound' || one.direction === 'inbound'),
    )
    .filter((one) => range.segment === undefined || ['', range.segment].includes(one.segment));
  return [...Map.groupBy(used, (one) => `${one.direction} ${keyText(one)}`).values()]
    .map((all): facts.AddressUse => {
      const { direction, name, protocol, serverPort } = all[0]!;
      return {
        direction: direction as 'outbound' | 'inbound',
        name,
        protocol,
        serverPort,
        ...namedBy(all),
        inboundBytes: bytesOf(all, (one) => one.inboundBytes),
        outboundBytes: bytesOf(all, (one) => one.outboundBytes),
      };
    })
    .sort(
      (a, b) =>
        (b.inboundBytes ?? -1) + (b.outboundBytes ?? 0) - ((a.inboundBytes ?? -1) + (a.outboundBytes ?? 0)) ||
        compare(a.direction === 'outbound' ? 1 : 2, b.direction === 'outbound' ? 1 : 2) ||
        compare(a.name, b.name) ||
        a.protocol - b.protocol ||
        nullsLast(a.serverPort, b.serverPort),
    );
}

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

export function rankApplications(rows: MemoryRows, range: facts.Ranking): facts.ApplicationUse {
  const all = [...Map.groupBy(judged(rows, range), keyText).values()]
    .filter((of) => of.some((one) => one.owns || one.isAttributed))
    .map((of): facts.ApplicationRow => {
      const { name, protocol, serverPort } = of[0]!;
      const owning = of.filter((one) => one.owns);
      const vantage = Math.min(...(owning.length > 0 ? owning : of).map((one) => one.vantage));
      const pairs = pairsOf(rows, of);
      return {
        name,
        protocol,
        serverPort,
        ...namedBy(of),
        inboundBytes: bytesOf(of, (one) => one.inboundBytes),
        outboundBytes: bytesOf(of, (one) => one.outboundBytes),
        vantage: vantage === 1 ? 'uplink' : 'bridge',
        addresses: new Set(of.flatMap((one) => (one.local === null ? [] : [one.local]))).size,
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

/** The device that a fact's local address belonged to in its minute; null: not known. */
export function ownersOf(rows: MemoryRows, range: facts.SiteRange): (one: JudgedFact) => string | null {
  const owners = new Map(
    strongest(rows, range).map((row) => [`${row.address} ${row.minute} ${row.segment}`, row.deviceKey]),
  );
  // What has no segment itself is of the only one whose owner is known.
  for (const all of Map.groupBy(strongest(rows, range), (row) => `${row.address} ${row.minute}`).values()) {
    const known = all.filter((row) => row.deviceKey !== '');
    if (known.length === 1) owners.set(`${known[0]!.address} ${known[0]!.minute} `, known[0]!.deviceKey);
  }
  return (one) => owners.get(`${one.local} ${one.minute} ${one.segment}`) || null;
}

export function readApplication(
  rows: MemoryRows,
  range: facts.ViewRange & facts.ApplicationKey,
): facts.ApplicationDetail {
  const used = judged(rows, range).filter((one) => keyText(one) === keyText(range));
  const young = used.filter((one) => rows.isYoung(one.minute));
  const isFallback = young.length === 0;
  const ownerOf = ownersOf(rows, range);
  const endOf = (one: JudgedFact) => {
    const deviceKey = ownerOf(one);
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

export function listPairs(
  rows: MemoryRows,
  range: facts.ViewRange,
  limit: number,
): facts.PairClassification[] {
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
