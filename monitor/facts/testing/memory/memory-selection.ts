/** Selection as the rules say it: which capture of an address and minute counts, and whose the address was. */
import { parseAddress } from '#common/ip/index.ts';
import type * as facts from '../../contract/facts.ts';
import type { HostRow } from './memory-append.ts';
import type { MemoryRows } from './memory-rows.ts';

export const sumOf = <T>(all: Iterable<T>, read: (one: T) => number) =>
  [...all].reduce((sum, one) => sum + read(one), 0);
export const compare = <T extends string | number>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0);
export const within = (range: { fromMinute: number; toMinute: number }) => (one: { minute: number }) =>
  one.minute >= range.fromMinute && one.minute < range.toMinute;
export const nullsLast = <T extends string | number>(a: T | null, b: T | null) =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : compare(a, b);
export const stepOf = (minute: number, stepSeconds: number) =>
  Math.floor(minute / stepSeconds) * stepSeconds * 1000;

export function compareAddresses(a: string, b: string): number {
  const [x, y] = [parseAddress(a)!, parseAddress(b)!];
  return x.length - y.length || Buffer.compare(x, y);
}

/** The chosen row of an address's minute comes first. */
export function byStrength(a: HostRow, b: HostRow): number {
  return (
    b.rxBytes + b.txBytes - (a.rxBytes + a.txBytes) ||
    b.capture.observedMs - a.capture.observedMs ||
    a.capture.vantage - b.capture.vantage ||
    b.rxBytes - a.rxBytes ||
    a.capture.sensorId - b.capture.sensorId ||
    compare(a.capture.name, b.capture.name)
  );
}

/** The segment of a row's own, blank for none. */
export const ownSegmentOf = (row: Pick<HostRow, 'segments'>) => [...row.segments].sort().at(-1) ?? '';

/**
 * The segment that each of these belongs to: its own, else the only one that any of `named` has; null where that are
 * several.
 */
export function resolveSegments<T>(
  all: readonly T[],
  ownOf: (one: T) => string,
  named: Iterable<string>,
): Map<T, string | null> {
  const segments = new Set([...named].filter((segment) => segment !== ''));
  const only = segments.size > 1 ? null : ([...segments][0] ?? '');
  return new Map(all.map((one) => [one, ownOf(one) || only]));
}

/** Rows of one address and minute by their segments; those whose segment is unknown are left out. */
function bySegment(all: readonly HostRow[], named: readonly HostRow[] = all): [string, HostRow[]][] {
  const resolved = resolveSegments(
    all,
    ownSegmentOf,
    named.flatMap((one) => [...one.segments]),
  );
  return [...Map.groupBy(all, (one) => resolved.get(one) ?? null)].filter(
    (group): group is [string, HostRow[]] => group[0] !== null,
  );
}

export interface ChosenRow {
  segment: string;
  /** As it came, and the rows that it was chosen from. */
  row: HostRow;
  all: readonly HostRow[];
  deviceKey: string;
  /** The row with what was delivered, and what filters dropped. */
  delivered: HostRow & { dropped: facts.FilteredTraffic };
}

/** What of this row was delivered, by what the uplinks of all these rows dropped. */
function deliveredOf(row: HostRow, all: readonly HostRow[]): ChosenRow['delivered'] {
  const sum = (name: keyof HostRow['dropped'], of = all) => sumOf(of, (one) => one.dropped[name]);
  const isOwn = (one: HostRow) => one.capture.sensorId === row.capture.sensorId;
  const [own, others] = [all.filter(isOwn), all.filter((one) => !isOwn(one))];
  const isBridge = row.capture.vantage === 2;
  const { ownScan } = row;
  const rx = Math.min(sum('rxBytes', others), row.rxBytes - ownScan.rxBytes);
  const tx = Math.min(isBridge ? sum('txBytes', own) : 0, row.txBytes - ownScan.txBytes);
  const packets = sum('rxPackets', others) + (isBridge ? sum('txPackets', own) : 0);
  const countedPackets = Math.min(packets, row.packets - ownScan.packets);
  return {
    ...row,
    ...{ rxBytes: row.rxBytes - rx, txBytes: row.txBytes - tx, packets: row.packets - countedPackets },
    dropped: {
      ...{ rxBytes: sum('rxBytes'), txBytes: sum('txBytes') },
      ...{ rxPackets: sum('rxPackets'), txPackets: sum('txPackets') },
      ...{ countedBytes: rx + tx, countedPackets },
    },
  };
}

/** The chosen row of each segment of an address and minute. */
export function chooseRows(ofMinute: readonly HostRow[]): ChosenRow[] {
  return bySegment(ofMinute).map(([segment, all]) => {
    const row = all.toSorted(byStrength)[0]!;
    return { segment, row, all, deviceKey: ownerOf(all), delivered: deliveredOf(row, all) };
  });
}

/** The chosen row of an address and minute, of this segment or of any. */
export function chooseRow(ofMinute: readonly HostRow[], segment: string | undefined): ChosenRow | undefined {
  return chooseRows(ofMinute)
    .filter((one) => segment === undefined || one.segment === segment)
    .sort(
      ({ delivered: a, ...one }, { delivered: b, ...other }) =>
        b.rxBytes + b.txBytes - a.rxBytes - a.txBytes || compare(one.segment, other.segment),
    )[0];
}

/** Rows after selection, the chosen one of each address, segment and minute. */
export function strongest(rows: MemoryRows, range: facts.SiteRange): (HostRow & { segment: string })[] {
  const inRange = rows.hosts(range.siteId).filter(within(range));
  return [...Map.groupBy(inRange, (one) => `${one.address} ${one.minute}`).values()].flatMap((all) =>
    chooseRows(all).map(({ segment, delivered, deviceKey }) => ({ ...delivered, segment, deviceKey })),
  );
}

/** Of one address and minute: what the captures that know an owner agree on. */
export function ownerOf(all: readonly HostRow[]): string {
  const known = new Set(all.map((one) => one.deviceKey).filter((deviceKey) => deviceKey !== ''));
  return known.size === 1 && !all.some((one) => one.isDisputed) ? [...known][0]! : '';
}

export interface OwnedMinute {
  kind: 'wan' | 'lan';
  minute: number;
  deviceKey: string;
  rxBytes: number;
  txBytes: number;
}

/** What each address and minute adds to its owner, all of it and the internal part. */
export function owned(rows: MemoryRows, range: facts.SiteRange): OwnedMinute[] {
  const wan = strongest(rows, range).map(({ minute, deviceKey, rxBytes, txBytes }) => {
    return { kind: 'wan' as const, minute, deviceKey, rxBytes, txBytes };
  });
  const lan: OwnedMinute[] = [];
  const internal = rows
    .hosts(range.siteId)
    .filter((one) => within(range)(one) && one.lanRxBytes + one.lanTxBytes > 0);
  const hosts = rows.hosts(range.siteId).filter(within(range));
  for (const [minute, all] of Map.groupBy(internal, (one) => one.minute)) {
    const placed = [...Map.groupBy(all, (one) => one.address)].flatMap(([address, of]) => {
      const named = hosts.filter((one) => one.minute === minute && one.address === address);
      return bySegment(of, named).map(([, ofSegment]) => ofSegment);
    });
    const owner = Math.max(...placed.flat().map((one) => one.capture.vantage));
    for (const ofSegment of placed) {
      const ofAddress = ofSegment.filter((one) => one.capture.vantage === owner);
      if (ofAddress.length === 0) continue;
      const asLan = ofAddress.map((one) => ({ ...one, rxBytes: one.lanRxBytes, txBytes: one.lanTxBytes }));
      const { deviceKey, rxBytes, txBytes } = asLan.sort(byStrength)[0]!;
      lan.push({ kind: 'lan', minute, deviceKey, rxBytes, txBytes });
    }
  }
  return [...wan, ...lan];
}
